package console

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A bar is a group of a look without time.
type bar struct {
	Name, Value string
	Whole       string // the name, which may be cut off in Name as others are
	Href        string // the look at it alone; empty where no filter can choose it
	Y, Width    int    // of the drawing, which is barsWidth wide
	Before      int    // the width of the earlier value; 0 without one
	Text        int    // where the value is written
}

// A bars drawing is one metric by group.
type bars struct {
	ID, Metric, Sentence string
	File                 string // of its picture, without an ending
	Bars                 []bar
	Height               int
	More                 int // how many rows of the table are not drawn
}

const (
	barsWidth = 480
	barHeight = 26
	nameWidth = 200
	maxBars   = 25
	// nameColumns of a terminal are as long as a name may be: an ideograph takes two.
	nameColumns = 24
)

func (c *Console) bars(s *shown, prefix string) (all []bars) {
	if s.rows == nil || s.look.over() != "" {
		return nil
	}
	for i, column := range s.rows.columns {
		if !column.Numeric() || column.Member == "" || strings.HasSuffix(column.Name, report.EndPrevious) {
			continue
		}
		drawn := bars{ID: prefix + "bars-" + column.Name, Metric: column.Name, More: max(len(s.rows.rows)-maxBars, 0)}
		only := ""
		if drawn.More > 0 {
			only = fmt.Sprintf("the first %d groups", maxBars)
		}
		drawn.Sentence = c.sentence(s.look, s.rows.counted(), column.Name, only)
		drawn.File = fileName(drawn.Sentence)
		compared := s.look.Compare != ""
		rows := s.rows.rows[:len(s.rows.rows)-drawn.More]
		most := 0.0
		for _, row := range rows {
			for _, v := range row[i:min(i+2, len(row))] {
				if f := number(v); f != nil && (v == row[i] || compared) {
					most = max(most, *f)
				}
			}
		}
		names := groupNames(s.rows)
		width := func(v client.Value) int {
			if f := number(v); f != nil && most > 0 {
				return int(*f / most * (barsWidth - nameWidth - 80))
			}
			return 0
		}
		for n, row := range rows {
			name := names[output.GroupOf(s.rows.columns, row)]
			b := bar{Name: runewidth.Truncate(name, nameColumns, "…"), Whole: name, Value: shownValue(column, row[i]),
				Y: n * barHeight, Width: width(row[i]), Href: s.look.onlyGroup(s.rows.columns, row)}
			if compared {
				b.Before = width(row[i+1])
			}
			b.Text = nameWidth + max(b.Width, b.Before) + 6
			drawn.Bars = append(drawn.Bars, b)
		}
		drawn.Height = len(drawn.Bars) * barHeight
		all = append(all, drawn)
	}
	return all
}

// onlyGroup is the address of the look at a row's group; empty where no filter chooses one of its values.
func (l look) onlyGroup(columns []report.Column, row report.Row) string {
	for i, column := range columns {
		if column.Kind != report.Text || column.Name != column.Member {
			continue
		}
		if !fits(row[i]) {
			return ""
		}
		l = l.onlyValue(column.Name, row[i].String())
	}
	return l.address()
}

func shorten(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
