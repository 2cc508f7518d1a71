package console

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client/report"
)

// A look is what a person wants to see: a question and how it is shown. Its address holds all of it.
type look struct {
	report.Question
	Top   int    // how many groups are drawn over time, 1 to maxTop
	Chart string // "line" or "bar"
	By    string // how groups are sorted: "value" for the highest first, "lowest", or "change" for what changed most
	// Patient is whether rows are asked for that take more than the key's rate of a minute allows.
	Patient bool
	Sort    string   // the column of the table, as COLUMN or COLUMN:desc; empty for the order of the answer
	Wider   []string // the periods that were narrowed, the first one first, as lookPeriod writes them
}

const (
	defaultTop = 8
	maxTop     = 50
	// maxWider is how many periods can be gone back to, and maxPeriod how many bytes one of them has, inclusive. Each is
	// in all links of a page.
	maxWider  = 12
	maxPeriod = 64
)

// firstLook is what a person sees who has asked nothing yet.
func firstLook() look {
	l := look{Question: report.Default(), Top: defaultTop, Chart: "line", By: "value"}
	l.Last = "30d"
	return l
}

// parseLook reads an address or the form: fields have the names of the flags of runlens query, and lists repeat theirs.
func (c *Console) parseLook(values url.Values) (look, error) {
	l := firstLook()
	if !values.Has("metrics") && !values.Has("over") { // the form always has the latter
		l.Metrics, l.Dimensions = []string{c.model(values.Get("model")).Metrics[0].Name}, []string{"day"}
	}
	if isFirst(values) {
		l.Compare, l.Weekdays, l.Timezone = "previous", true, explain.Canonical(values.Get("zone"))
	}
	if hasPeriod(values) {
		l.Last = ""
	}
	for name, field := range fieldsOf(&l.Question) {
		if err := setField(field, name, values[name]); err != nil {
			return l, err
		}
	}
	if values.Has("top") {
		var err error
		if l.Top, err = strconv.Atoi(values.Get("top")); err != nil || l.Top < 1 || l.Top > maxTop {
			return l, fmt.Errorf("top %s must be 1 to %d", values.Get("top"), maxTop)
		}
	}
	l.Chart = cmp.Or(values.Get("chart"), l.Chart)
	l.By = cmp.Or(values.Get("by"), l.By)
	l.Patient = values.Get("patient") == "true"
	l.Sort = values.Get("sort")
	l.widen(values["wider"]...)
	l.takeForm(values)
	// The form has the narrowed periods and then its own. Whoever chooses other days goes on from those.
	if path := values["periods"]; len(path) > 1 && path[len(path)-1] == l.period() {
		l.widen(path[:len(path)-1]...)
	}
	if member, value := values.Get("filter-member"), strings.TrimSpace(values.Get("filter-value")); value != "" {
		l.addFilter(member, c.identifiers(member, value)...)
	}
	return l, nil
}

// isFirst reports whether an address is that of the first page, which names at most the browser's zone.
func isFirst(values url.Values) bool {
	return len(values) == 0 || len(values) == 1 && values.Has("zone")
}

func hasPeriod(values url.Values) bool {
	return slices.ContainsFunc([]string{"start", "end", "last", "today", "yesterday", "period"}, values.Has)
}

// takeForm reads the fields that only the form has: they stand for several others.
func (l *look) takeForm(values url.Values) {
	switch period := values.Get("period"); period {
	case "":
	case "days":
		l.setPeriod("start=" + values.Get("start") + "&end=" + values.Get("end"))
	default:
		l.setPeriod(period)
	}
	if values.Has("over") {
		l.setOver(values.Get("over"))
	}
	if l.Compare == "" || l.Grain != "" {
		l.Weekdays = false
	}
}

// setOver takes a unit of time: day, week, month or none.
func (l *look) setOver(unit string) {
	l.Dimensions = slices.DeleteFunc(slices.Clone(l.Dimensions), func(d string) bool { return d == "day" })
	switch l.Grain = unit; unit {
	case "day":
		l.Grain, l.Dimensions = "", append(l.Dimensions, "day")
	case "none":
		l.Grain = ""
	}
	if unit != "day" {
		l.Fill = false
	}
}

// over is the unit of time of the rows: day, week or month; empty without one.
func (l look) over() string {
	if l.Grain == "" && slices.Contains(l.Dimensions, "day") {
		return "day"
	}
	return l.Grain
}

// groups are the dimensions besides the day.
func (l look) groups() []string {
	return slices.DeleteFunc(slices.Clone(l.Dimensions), func(d string) bool { return d == "day" })
}

// period is the part of the look's address that names its days, such as last=30d.
func (l look) period() string {
	values := url.Values{}
	for name, field := range fieldsOf(&l.Question) {
		if slices.Contains(profile.PeriodFields, name) && !field.IsZero() {
			values.Set(name, fmt.Sprint(field.Interface()))
		}
	}
	return values.Encode()
}

// setPeriod takes the days that period has written.
func (l *look) setPeriod(text string) {
	values, _ := url.ParseQuery(text) // what cannot be read names no days, which is the default
	for name, field := range fieldsOf(&l.Question) {
		if slices.Contains(profile.PeriodFields, name) {
			field.SetZero()
			_ = setField(field, name, values[name]) // texts and marks take any value
		}
	}
}

// narrowed is the look at some of its days, which remembers those that it had.
func (l look) narrowed(span report.Span) look {
	l.widen(l.period())
	l.setPeriod("start=" + span.Start.Format(time.DateOnly) + "&end=" + span.End.Format(time.DateOnly))
	return l
}

// widen remembers periods that were narrowed, the last maxWider of them.
func (l *look) widen(periods ...string) {
	l.Wider = slices.Concat(l.Wider, periods)
	l.Wider = slices.DeleteFunc(l.Wider, func(period string) bool { return len(period) > maxPeriod })
	l.Wider = l.Wider[max(len(l.Wider)-maxWider, 0):]
}

// addFilter adds values to the filter on a member.
func (l *look) addFilter(member string, values ...string) {
	l.Filter = slices.Clone(l.Filter)
	for i, text := range l.Filter {
		if f, err := report.ParseFilter(text); err == nil && f.Member == member {
			values = slices.DeleteFunc(values, func(v string) bool { return slices.Contains(f.Values, v) })
			l.Filter[i] = report.FilterText(member, append(f.Values, values...)...)
			return
		}
	}
	l.Filter = append(l.Filter, report.FilterText(member, values...))
}

// onlyValue is the look at one value of a dimension.
func (l look) onlyValue(member, value string) look {
	l.Filter = slices.DeleteFunc(slices.Clone(l.Filter), func(text string) bool {
		return strings.HasPrefix(text, member+"=")
	})
	l.Filter = append(l.Filter, report.FilterText(member, value))
	return l
}

// values are the fields of the look's address, without those that have their defaults.
func (l look) values() url.Values {
	values := url.Values{}
	defaults := report.Default()
	plain := maps.Collect(fieldsOf(&defaults))
	for name, field := range fieldsOf(&l.Question) {
		if reflect.DeepEqual(field.Interface(), plain[name].Interface()) && name != "model" {
			continue
		}
		if list, ok := reflect.TypeAssert[[]string](field); ok {
			values[name] = list
		} else {
			values.Set(name, fmt.Sprint(field.Interface()))
		}
	}
	if l.Top != defaultTop {
		values.Set("top", strconv.Itoa(l.Top))
	}
	if l.Chart != "line" {
		values.Set("chart", l.Chart)
	}
	if l.By != "value" {
		values.Set("by", l.By)
	}
	if l.Patient {
		values.Set("patient", "true")
	}
	if l.Sort != "" {
		values.Set("sort", l.Sort)
	}
	if len(l.Wider) > 0 {
		values["wider"] = l.Wider
	}
	return values
}

// address is where the console shows the look. As all addresses in pages it is relative to the session's path, which
// differs from browser to browser.
func (l look) address() string { return "explore?" + l.values().Encode() }

// terminalFields are those of a saved question that only the terminal uses.
var terminalFields = []string{"fail-if", "min-count"}

// fieldsOf are the fields of a question that addresses have, by their names there and in saved questions.
func fieldsOf(q *report.Question) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for name, field := range profile.FieldsOf(q) {
			if !slices.Contains(terminalFields, name) && !yield(name, field) {
				return
			}
		}
	}
}

// setField sets a field to the values of an address; none leave it as it is.
func setField(field reflect.Value, name string, values []string) error {
	if len(values) == 0 {
		return nil
	}
	last := values[len(values)-1]
	switch field.Kind() {
	case reflect.Slice:
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		field.Set(reflect.ValueOf(slices.Clip(values)))
	case reflect.Bool:
		field.SetBool(last == "true")
	case reflect.Int:
		n, err := strconv.Atoi(last)
		if err != nil {
			return fmt.Errorf("%s %q is no number", name, last)
		}
		field.SetInt(int64(n))
	default:
		field.SetString(last)
	}
	return nil
}

// check refuses what the form does not offer and the API would not understand.
func (l look) check() error {
	switch {
	case len(l.Metrics) == 0:
		return errors.New("choose at least one metric")
	case l.Chart != "line" && l.Chart != "bar":
		return fmt.Errorf("the chart %q is neither line nor bar", l.Chart)
	case !slices.Contains([]string{"value", "lowest", "change"}, l.By):
		return fmt.Errorf("by %q is not value, lowest or change", l.By)
	}
	return nil
}
