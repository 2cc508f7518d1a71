package main

import (
	"math/rand/v2"
	"time"
)

// A generator draws legal questions.
type generator struct {
	random *rand.Rand
	models []model
	zones  []string
	until  time.Time // where the data ends
}

func newGenerator(seed uint64, client int, models []model, zones []string, until time.Time) *generator {
	return &generator{rand.New(rand.NewPCG(seed, uint64(client))), models, zones, until}
}

// anywhere draws a question about the years 1 to 9999.
func (g *generator) anywhere() question {
	q := g.withoutRange()
	q.Range = g.rangeAnywhere()
	return q
}

// recent draws a question about the span of the data.
func (g *generator) recent() question {
	q := g.withoutRange()
	q.Range = g.rangeOf(g.until.AddDate(0, 0, -g.random.IntN(400)), 1+g.random.IntN(maxDays))
	return q
}

func (g *generator) withoutRange() question {
	m := g.models[g.random.IntN(len(g.models))]
	q := question{Model: m.Name}
	for _, i := range g.some(len(m.Metrics), 1) {
		q.Metrics = append(q.Metrics, m.Metrics[i].Name)
		if !m.Metrics[i].Additive {
			q.nonAdditive = append(q.nonAdditive, m.Metrics[i].Name)
		}
	}
	if g.random.IntN(4) > 0 {
		for _, i := range g.some(len(m.Dimensions), 1) {
			d := m.Dimensions[i]
			q.Dimensions = append(q.Dimensions, d.Name)
			q.columns = append(q.columns, d.Name)
			for _, companion := range d.Companions {
				q.columns = append(q.columns, companion.Name)
			}
		}
	}
	q.columns = append(q.columns, q.Metrics...)
	if g.random.IntN(2) == 0 {
		for range 1 + g.random.IntN(maxFilters) {
			q.Filters = append(q.Filters, g.filter(m.Dimensions[g.random.IntN(len(m.Dimensions))].Name))
		}
	}
	if len(q.Dimensions) > 0 && g.random.IntN(2) == 0 {
		g.order(&q)
	}
	if g.random.IntN(2) == 0 {
		q.Limit = 1 + g.random.IntN(maxLimit)
	}
	return q
}

// order draws terms over selected members, over dimensions only in two of three questions.
func (g *generator) order(q *question) {
	members := append([]string{}, q.Dimensions...)
	if g.random.IntN(3) == 0 {
		members = append(members, q.Metrics...)
	}
	for _, i := range g.some(len(members), 1) {
		if len(q.Order) < maxTerms {
			q.Order = append(q.Order, orderTerm{members[i], []string{"asc", "desc"}[g.random.IntN(2)]})
		}
	}
}

// The bounds of spec section 8, inclusive.
const (
	maxDays    = 366
	maxFilters = 8
	maxValues  = 50
	maxLength  = 200
	maxTerms   = 8
	maxLimit   = 500
)

// some draws at least so many of n positions, in any order and without repeats.
func (g *generator) some(n, least int) []int {
	return g.random.Perm(n)[:least+g.random.IntN(n-least+1)]
}

// known are values that the sample's rows have, of any dimension.
var known = []string{
	"internal", "external", "automated", "unknown", "initiated", "associated", "interacted", "human",
	"web", "api", "slack", "email", "example.org", "example.net", "acme.example.com", "support-triage",
}

func (g *generator) filter(member string) filter {
	value := func() string {
		switch {
		case member == "day":
			return g.until.AddDate(0, 0, -g.random.IntN(maxDays)).Format(time.DateOnly)
		case g.random.IntN(2) == 0:
			return known[g.random.IntN(len(known))]
		default:
			return g.text()
		}
	}
	if g.random.IntN(2) == 0 {
		return filter{Member: member, Op: "eq", Value: value()}
	}
	f := filter{Member: member, Op: "in"}
	for range 1 + g.random.IntN(maxValues) {
		f.Values = append(f.Values, value())
	}
	return f
}

// awkward are characters that quoting, SQL and JSON treat specially, and the ends of Unicode's planes.
var awkward = []rune("'\"`\\%_{}:?$\x00\t\n\r\x7f  Åß\u00a0\u200b\u2028\ufeff\ufffd\uffff\U0001f600\U0010ffff")

// text draws 1 to 200 characters.
func (g *generator) text() string {
	text := make([]rune, 1+g.random.IntN(maxLength))
	for i := range text {
		if text[i] = awkward[g.random.IntN(len(awkward))]; g.random.IntN(3) > 0 {
			text[i] = rune('a' + g.random.IntN(26))
		}
	}
	return string(text)
}
