package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A comparison puts beside every metric its earlier value, the difference and the change in percent.
type comparison struct {
	run    *Run
	now    []Column // of the answers
	keys   []int    // columns of dimensions, in the order of the rows
	desc   []bool   // of keys
	day    int      // column of the dimension day; -1 for none
	shift  shift
	result []Column
}

// compare joins a table with the same query of an earlier span.
func (r *Run) compare(ctx context.Context, now Table, q client.Query, s shift) (Table, error) {
	c := comparison{run: r, now: now.Columns, day: -1, shift: s}
	for _, term := range r.byKey {
		at := slices.IndexFunc(now.Columns, func(column Column) bool { return column.Name == term.Member })
		if at < 0 || now.Columns[at].Numeric() { // a metric's order has one page, that top reads
			continue
		}
		c.keys, c.desc = append(c.keys, at), append(c.desc, term.Direction == client.Desc)
		if term.Member == "day" {
			c.day = at
		}
	}
	for _, column := range now.Columns {
		c.result = append(c.result, column)
		if column.Numeric() {
			c.result = append(c.result, Column{column.Name + EndPrevious, column.Kind, column.Member},
				Column{column.Name + EndDifference, column.Kind, ""}, Column{column.Name + EndPercent, Percent, ""})
		}
	}
	c.noteToday()
	switch {
	case !s.complete():
		return Table{c.result, c.merge(now.Rows, func(func(Row, error) bool) {})}, nil
	case r.Question.Grain == "":
		r.Facts.note(fmt.Sprintf("%s is compared with %s.", s.now, s.earlier))
	default:
		r.Facts.note(fmt.Sprintf("Every %s is compared with the same days of %s.", r.Question.Grain, map[string]string{
			"weekprevious": "the week before", "weekyear": "the week 52 weeks before",
			"monthprevious": "the month before", "monthyear": "that month a year before",
		}[r.Question.Grain+r.Question.Compare]))
	}
	q.Range = s.earlier.in(q.Range.Timezone)
	q.Limit = client.MaxLimit
	if byMetric(q) {
		r.Facts.note("In the order of a metric, what only the earlier period has is left out; in the order of dimensions " +
			"it is here.")
		return c.top(ctx, now, q)
	}
	earlier, err := r.open(ctx, q)
	if err != nil {
		return earlier, err
	}
	return Table{c.result, c.merge(now.Rows, c.moved(earlier.Rows))}, nil
}

// noteToday says what becomes of the days that are not over, where the question has some.
func (c comparison) noteToday() {
	today := c.run.today.Format(time.DateOnly)
	switch {
	case !c.shift.open:
	case !c.shift.complete():
		c.run.Facts.note(today + " is not over, so it is not compared.")
	case c.day >= 0:
		c.run.Facts.note(today + " is not over: it is here, but not compared.")
	default:
		c.run.Facts.note(today + " is not over: a comparison leaves it out.")
	}
}

func parse(day string) time.Time {
	t, _ := time.Parse(time.DateOnly, day) // one of our own
	return t
}

// merge joins two sorted streams; a row that one of them lacks is there with the metrics of nothing.
func (c comparison) merge(now, earlier iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		nextNow, stopNow := iter.Pull2(now)
		defer stopNow()
		nextEarlier, stopEarlier := iter.Pull2(earlier)
		defer stopEarlier()
		a, err, more := nextNow()
		b, errEarlier, moreEarlier := nextEarlier()
		for more || moreEarlier {
			if err != nil || errEarlier != nil {
				yield(nil, cmp.Or(err, errEarlier))
				return
			}
			order := -1
			if more && moreEarlier {
				order = c.order(a, b)
			} else if moreEarlier {
				order = 1
			}
			joined := Row(nil)
			switch {
			case order < 0:
				joined = c.join(a, nil)
			case order > 0:
				joined = c.join(nil, b)
			default:
				joined = c.join(a, b)
			}
			if !yield(joined, nil) {
				return
			}
			if order <= 0 {
				a, err, more = nextNow()
			}
			if order >= 0 {
				b, errEarlier, moreEarlier = nextEarlier()
			}
		}
	}
}

// moved gives earlier rows the day that they are compared with. What has none is left out, with a note.
func (c comparison) moved(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	if c.day < 0 {
		return rows
	}
	return func(yield func(Row, error) bool) {
		for row, err := range rows {
			if err == nil {
				day, ok := c.shift.later(parse(row[c.day].String()))
				if !ok {
					c.run.Facts.note(row[c.day].String() + " has no day to be compared with; it is left out.")
					continue
				}
				row[c.day] = client.StringValue(day.Format(time.DateOnly))
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// order compares the keys of two rows as the server does: byte by byte, null last in both directions.
func (c comparison) order(a, b Row) int {
	for i, key := range c.keys {
		x, y := a[key], b[key]
		switch {
		case x.IsNull() && y.IsNull():
			continue
		case x.IsNull():
			return 1
		case y.IsNull():
			return -1
		}
		if order := strings.Compare(x.String(), y.String()); order != 0 {
			if c.desc[i] {
				return -order
			}
			return order
		}
	}
	return 0
}

// join is a row of the result; nil is a row that is not there. Names are the later row's, where it has one.
func (c comparison) join(now, earlier Row) Row {
	names := now
	if now == nil {
		names = earlier
	}
	row := make(Row, 0, len(c.result))
	for i, column := range c.now {
		if !column.Numeric() {
			row = append(row, names[i])
			continue
		}
		a, b := column.absent(), column.absent()
		if now != nil {
			a = now[i]
		}
		if earlier != nil {
			b = earlier[i]
		} else if !c.shift.complete() || c.day >= 0 && !c.run.comparable(parse(names[c.day].String())) {
			b = client.Value{} // no row is missing: there is no such day
		}
		row = append(row, a, b, difference(a, b), percent(a, b))
	}
	return row
}

// comparable reports whether a day has one to compare it with: it is over, and not a 29th of February whose year before
// has none.
func (r *Run) comparable(day time.Time) bool {
	leap := r.Question.Compare == "year" && !r.Question.Weekdays && day.Month() == time.February && day.Day() == 29
	return day.Before(r.today) && !leap
}

func difference(a, b client.Value) client.Value {
	if m, ok := a.Int64(); ok {
		if n, ok := b.Int64(); ok && (n >= 0) == (m >= 0) { // the difference cannot overflow
			return client.Int64Value(m - n)
		}
	}
	x, ok := a.Float64()
	y, ok2 := b.Float64()
	if !ok || !ok2 {
		return client.Value{}
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x-y, 'g', 12, 64), 64) // without the noise of binary fractions
	return client.Float64Value(rounded)
}

// percent is the change relative to the earlier value, to two decimals; null where that is null or 0.
func percent(a, b client.Value) client.Value {
	x, ok := a.Float64()
	y, ok2 := b.Float64()
	if !ok || !ok2 || y == 0 {
		return client.Value{}
	}
	return client.Float64Value(math.Round((x-y)/math.Abs(y)*1e4)/1e2 + 0) // and no -0
}
