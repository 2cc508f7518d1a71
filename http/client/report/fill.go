package report

import (
	"iter"
	"slices"
	"time"

	"github.com/runlens/runlens/http/client"
)

// fill adds a row for every day of the span that a group has none of. The day is the last key of the rows' order.
func (r *Run) fill(table Table, span Span, order []client.OrderTerm) Table {
	f := filler{columns: table.Columns, first: span.Start, last: span.End, step: 1, comparable: r.comparable}
	f.day = slices.IndexFunc(table.Columns, func(c Column) bool { return c.Name == "day" })
	for _, term := range order[:len(order)-1] {
		f.keys = append(f.keys, slices.IndexFunc(table.Columns, func(c Column) bool { return c.Name == term.Member }))
	}
	if order[len(order)-1].Direction == client.Desc {
		f.first, f.last, f.step = span.End, span.Start, -1
	}
	return Table{table.Columns, f.rows(table.Rows)}
}

type filler struct {
	columns     []Column
	day         int
	keys        []int // columns of the other dimensions
	first, last time.Time
	step        int // days, 1 or -1
	comparable  func(day time.Time) bool
}

func (f filler) rows(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var group Row // the row that came last
		next := f.first
		if len(f.keys) == 0 { // one group, that is there without rows too
			group = make(Row, len(f.columns))
		}
		until := func(day time.Time) bool {
			for ; group != nil && next.Before(day) == (f.step > 0) && !next.Equal(day); next = next.AddDate(0, 0, f.step) {
				if !yield(f.empty(group, next), nil) {
					return false
				}
			}
			return true
		}
		for row, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if !f.same(group, row) {
				if !until(f.last.AddDate(0, 0, f.step)) {
					return
				}
				next = f.first
			}
			group = row
			if !until(parse(row[f.day].String())) || !yield(row, nil) {
				return
			}
			next = next.AddDate(0, 0, f.step)
		}
		until(f.last.AddDate(0, 0, f.step))
	}
}

func (f filler) same(a, b Row) bool {
	for _, key := range f.keys {
		if a == nil || a[key] != b[key] {
			return false
		}
	}
	return true
}

// empty is a group's row of a day without data.
func (f filler) empty(group Row, day time.Time) Row {
	row := slices.Clone(group)
	for i, column := range f.columns {
		switch {
		case column.Numeric() && column.Name != column.Member && !f.comparable(day): // of a comparison
			row[i] = client.Value{}
		case column.Numeric():
			row[i] = column.absent()
		}
	}
	row[f.day] = client.StringValue(day.Format(time.DateOnly))
	return row
}
