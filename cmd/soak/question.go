package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A model is what the catalog says of one (spec 2.2).
type model struct {
	Name    string
	Metrics []struct {
		Name     string
		Additive bool
	}
	Dimensions []struct {
		Name       string
		Companions []struct{ Name string }
	}
}

// A question is the body of a query request (spec 2.10).
type question struct {
	Model      string      `json:"model"`
	Metrics    []string    `json:"metrics"`
	Dimensions []string    `json:"dimensions,omitempty"`
	Filters    []filter    `json:"filters,omitempty"`
	Range      dateRange   `json:"range"`
	Order      []orderTerm `json:"order,omitempty"`
	Limit      int         `json:"limit,omitempty"`
	Cursor     string      `json:"cursor,omitempty"`

	columns     []string // of the answer
	nonAdditive []string // of the selected metrics
}

type filter struct {
	Member string   `json:"member"`
	Op     string   `json:"op"`
	Value  string   `json:"value,omitempty"`
	Values []string `json:"values,omitempty"`
}

type dateRange struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Timezone string `json:"timezone"`
}

type orderTerm struct {
	Member    string `json:"member"`
	Direction string `json:"direction"`
}

func (q question) body() []byte {
	body, err := json.Marshal(q)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return body
}

// pages reports whether an answer may have a next page (spec 4.2, rules 2, 4 and 5).
func (q question) pages() bool {
	byMetric := func(o orderTerm) bool { return slices.Contains(q.Metrics, o.Member) }
	return len(q.Dimensions) > 0 && !slices.ContainsFunc(q.Order, byMetric)
}

// rows is the most rows of a page.
func (q question) rows() int {
	if q.Limit == 0 {
		return 100
	}
	return q.Limit
}

// The days at which a range may begin or end outside of what RFC 3339 can write in UTC (contract 4.8).
const (
	firstDay = "0001-01-01"
	lastDay  = "9999-12-31"
)

// mayRefuse reports whether a legal question may be refused: its first or last instant has no year that RFC 3339
// writes.
func (q question) mayRefuse(r refusal) bool {
	if r.Code != "invalid_query" || r.Param == nil {
		return false
	}
	return *r.Param == "range.start" && q.Range.Start == firstDay || *r.Param == "range.end" && q.Range.End == lastDay
}

// A page is an answer to a question (spec 2.14).
type page struct {
	QueryID        uuid.UUID `json:"queryId"`
	CatalogVersion string    `json:"catalogVersion"`
	AsOf           string    `json:"asOf"`
	Range          struct {
		dateRange
		StartUTC string `json:"startUtc"`
		EndUTC   string `json:"endUtc"`
	} `json:"range"`
	Columns []struct {
		Name   string `json:"name"`
		Type   string `json:"type"`
		Member string `json:"member"`
	} `json:"columns"`
	Rows     [][]any `json:"rows"`
	Cursor   *string `json:"cursor"`
	Warnings []struct {
		Code    string `json:"code"`
		Member  string `json:"member"`
		Message string `json:"message"`
	} `json:"warnings"`
}

var instantPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

func instants(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return !instantPattern.MatchString(s) })
}

// check reads the body of a 200 and says how it departs from the specification.
func (q question) check(body []byte) (page, error) {
	var p page
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, err
	}
	names := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		names[i] = c.Name
	}
	warned := make([]string, len(p.Warnings))
	for i, w := range p.Warnings {
		warned[i] = w.Member
	}
	wide := func(row []any) bool { return len(row) != len(names) }
	switch {
	case p.QueryID == uuid.Nil || p.CatalogVersion == "":
		return p, errors.New("no queryId or no catalogVersion")
	case p.Range.dateRange != q.Range:
		return p, fmt.Errorf("the range %+v", p.Range)
	case !instants(p.AsOf, p.Range.StartUTC, p.Range.EndUTC):
		return p, fmt.Errorf("the instants %q, %q and %q", p.AsOf, p.Range.StartUTC, p.Range.EndUTC)
	case p.Range.StartUTC > p.Range.EndUTC:
		return p, fmt.Errorf("startUtc %s is after endUtc %s", p.Range.StartUTC, p.Range.EndUTC)
	case !q.near(p.Range.StartUTC, q.Range.Start), !q.near(p.Range.EndUTC, q.Range.End):
		return p, fmt.Errorf("%s to %s of %+v is days away", p.Range.StartUTC, p.Range.EndUTC, q.Range)
	case !slices.Equal(names, q.columns):
		return p, fmt.Errorf("the columns %q", names)
	case len(p.Rows) > q.rows() || len(q.Dimensions) == 0 && len(p.Rows) != 1 || slices.ContainsFunc(p.Rows, wide):
		return p, fmt.Errorf("%d rows of %d columns at a limit of %d", len(p.Rows), len(names), q.rows())
	case p.Cursor != nil && !q.pages():
		return p, errors.New("a cursor where there are no pages")
	case !sameMembers(warned, q.nonAdditive):
		return p, fmt.Errorf("warnings about %q", warned)
	}
	return p, nil
}

// near reports whether an instant lies within three days of the beginning of a local day. No clock is further from UTC.
func (question) near(instant, day string) bool {
	at, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		return false
	}
	midnight, err := time.Parse(time.DateOnly, day)
	return err == nil && at.Sub(midnight).Abs() <= 3*24*time.Hour
}

func sameMembers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
