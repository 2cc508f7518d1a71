package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
)

// now is a Monday; in Auckland it is the 24th, in Honolulu still the 22nd.
var (
	now   = time.Date(2026, 11, 23, 11, 30, 0, 0, time.UTC)
	today = TodayIn("UTC", now)
)

func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		q    Question
		want string
	}{
		"default":            {Question{}, "2026-10-25 to 2026-11-23"},
		"before an end":      {Question{End: "2026-03-01"}, "2026-01-31 to 2026-03-01"},
		"both":               {Question{Start: "2026-01-01", End: "2026-01-31"}, "2026-01-01 to 2026-01-31"},
		"from a start":       {Question{Start: "2026-11-01"}, "2026-11-01 to 2026-11-23"},
		"30 days":            {Question{Last: "30d"}, "2026-10-25 to 2026-11-23"},
		"1 day":              {Question{Last: "1d"}, "2026-11-23"},
		"days before an end": {Question{Last: "2d", End: "2024-03-01"}, "2024-02-29 to 2024-03-01"},
		"a week":             {Question{Last: "1w"}, "2026-11-23"},
		"12 weeks":           {Question{Last: "12w"}, "2026-09-07 to 2026-11-23"},
		"weeks from Sunday":  {Question{Last: "2w", WeekStart: "sunday"}, "2026-11-15 to 2026-11-23"},
		"13 months":          {Question{Last: "13mo"}, "2025-11-01 to 2026-11-23"},
		"1 month":            {Question{Last: "1mo"}, "2026-11-01 to 2026-11-23"},
		"today":              {Question{Today: true}, "2026-11-23"},
		"yesterday":          {Question{Yesterday: true}, "2026-11-22"},
		"today in Auckland":  {Question{Today: true, Timezone: "Pacific/Auckland"}, "2026-11-24"},
		"today in Honolulu":  {Question{Today: true, Timezone: "Pacific/Honolulu"}, "2026-11-23"},
		"an unknown zone":    {Question{Today: true, Timezone: "Mars/Olympus"}, "2026-11-23"},
		"two periods":        {Question{Today: true, Yesterday: true}, "exclude each other"},
		"start and last":     {Question{Start: "2026-01-01", Last: "3d"}, "exclude each other"},
		"end of today":       {Question{Today: true, End: "2026-01-01"}, "exclude each other"},
		"no days":            {Question{Last: "0d"}, "30d, 12w or 13mo"},
		"no unit":            {Question{Last: "12"}, "30d, 12w or 13mo"},
		"negative":           {Question{Last: "-1d"}, "30d, 12w or 13mo"},
		"much":               {Question{Last: "9999mo"}, "2026-11-23"}, // the year 1193 is a year
		"no day":             {Question{Start: "2026-02-29"}, "--start 2026-02-29 is no day"},
		"no end":             {Question{End: "31.1.2026"}, "--end 31.1.2026 is no day"},
		"the year 0":         {Question{End: "0000-05-01"}, "is no day"},
		"before the year 1":  {Question{End: "0001-01-02", Last: "30d"}, "before the year 1"},
		"turned round": {Question{Start: "2026-02-01", End: "2026-01-01"},
			"the range starts on 2026-02-01, after its end on 2026-01-01"},
		"a start in the future": {Question{Start: "2027-01-01"}, "after its end on 2026-11-23"},
	} {
		if c.q.Timezone == "" {
			c.q.Timezone = "UTC"
		}
		if c.q.WeekStart == "" {
			c.q.WeekStart = "monday"
		}
		span, err := c.q.Span(now)
		got := span.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func spanOf(start, end string) Span { return Span{parse(start), parse(end)} }

func TestBuckets(t *testing.T) {
	for name, c := range map[string]struct {
		q    Question
		span Span
		want []string
	}{
		"weeks": {Question{Grain: "week", WeekStart: "monday"}, spanOf("2026-01-01", "2026-01-12"),
			[]string{"2025-12-29: 2026-01-01 to 2026-01-04", "2026-01-05: 2026-01-05 to 2026-01-11", "2026-01-12: 2026-01-12"}},
		"from Sunday": {Question{Grain: "week", WeekStart: "sunday"}, spanOf("2026-01-04", "2026-01-10"),
			[]string{"2026-01-04: 2026-01-04 to 2026-01-10"}},
		"months": {Question{Grain: "month"}, spanOf("2024-01-31", "2024-03-01"),
			[]string{"2024-01-01: 2024-01-31", "2024-02-01: 2024-02-01 to 2024-02-29", "2024-03-01: 2024-03-01"}},
		"days": {Question{}, spanOf("2024-02-28", "2024-03-01"),
			[]string{"2024-02-28: 2024-02-28", "2024-02-29: 2024-02-29", "2024-03-01: 2024-03-01"}},
		"over the end": {Question{Grain: "month"}, spanOf("2025-12-05", "2026-01-05"),
			[]string{"2025-12-01: 2025-12-05 to 2025-12-31", "2026-01-01: 2026-01-01 to 2026-01-05"}},
	} {
		var got []string
		for _, b := range c.q.Periods(c.span) {
			got = append(got, b.Whole.Start.Format(time.DateOnly)+": "+b.Span.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	// Every day of four years is in one bucket, of every week start.
	for _, day := range append(weekdays, "") {
		q := Question{Grain: "week", WeekStart: day}
		if day == "" {
			q.Grain = "month"
		}
		next := parse("2023-05-17")
		for _, b := range q.Periods(spanOf("2023-05-17", "2027-05-17")) {
			if !b.Start.Equal(next) || b.End.Before(b.Start) || b.Whole.Start.After(b.Start) ||
				day != "" && strings.ToLower(b.Whole.Start.Weekday().String()) != day {
				t.Fatalf("%s: %v", day, b)
			}
			next = b.End.AddDate(0, 0, 1)
		}
		if !next.Equal(parse("2027-05-18")) {
			t.Errorf("%s ends before %s", day, next)
		}
	}
}

func TestCompared(t *testing.T) {
	for name, c := range map[string]struct {
		grain, compare string
		span           Span
		want           string
	}{
		"previous":             {"", "previous", spanOf("2026-03-01", "2026-03-31"), "2026-01-29 to 2026-02-28"},
		"one day":              {"", "previous", spanOf("2026-03-01", "2026-03-01"), "2026-02-28"},
		"year":                 {"", "year", spanOf("2026-03-01", "2026-03-31"), "2025-03-01 to 2025-03-31"},
		"leap year":            {"", "year", spanOf("2024-02-29", "2024-02-29"), "2023-02-28"},
		"after a leap day":     {"", "year", spanOf("2025-02-01", "2025-02-28"), "2024-02-01 to 2024-02-28"},
		"week":                 {"week", "previous", spanOf("2026-11-16", "2026-11-18"), "2026-11-09 to 2026-11-11"},
		"week of a year ago":   {"week", "year", spanOf("2026-11-16", "2026-11-22"), "2025-11-17 to 2025-11-23"},
		"month":                {"month", "previous", spanOf("2026-03-01", "2026-03-31"), "2026-02-01 to 2026-02-28"},
		"short month":          {"month", "previous", spanOf("2026-02-01", "2026-02-28"), "2026-01-01 to 2026-01-31"},
		"month until now":      {"month", "previous", spanOf("2026-11-01", "2026-11-23"), "2026-10-01 to 2026-10-22"},
		"until now":            {"", "previous", spanOf("2026-11-17", "2026-11-23"), "2026-11-10 to 2026-11-15"},
		"year until now":       {"", "year", spanOf("2026-11-17", "2026-12-31"), "2025-11-17 to 2025-11-22"},
		"days that go on":      {"", "previous", spanOf("2026-11-23", "2026-11-24"), ""},
		"month until the 30th": {"month", "previous", spanOf("2026-03-01", "2026-03-30"), "2026-02-01 to 2026-02-28"},
		"month of a year ago":  {"month", "year", spanOf("2025-02-01", "2025-02-28"), "2024-02-01 to 2024-02-29"},
	} {
		got := Question{Grain: c.grain, Compare: c.compare}.compared(c.span, today)
		if got.complete() != (c.want != "") || got.complete() && got.earlier.String() != c.want {
			t.Errorf("%s: %s, want %s", name, got.earlier, c.want)
		}
	}
	for name, c := range map[string]struct {
		compare string
		want    string
	}{"weeks before": {"previous", "2026-02-14 to 2026-03-15"}, "52 weeks before": {"year", "2025-03-22 to 2025-04-20"}} {
		got := Question{Compare: c.compare, Weekdays: true}.compared(spanOf("2026-03-21", "2026-04-19"), today) // 30 days
		if got.earlier.String() != c.want || got.earlier.Start.Weekday() != time.Saturday {
			t.Errorf("%s: %s, want %s", name, got.earlier, c.want)
		}
	}
	// Days lead back to the span, or nowhere.
	leap := Question{Compare: "year"}.compared(spanOf("2025-02-28", "2025-03-01"), today)
	for day, want := range map[string]string{"2024-02-28": "2025-02-28", "2024-02-29": "", "2024-03-01": "2025-03-01"} {
		later, ok := leap.later(parse(day))
		if ok != (want != "") || ok && later.Format(time.DateOnly) != want {
			t.Errorf("%s leads to %s, %t", day, later, ok)
		}
	}
}

func TestFilters(t *testing.T) {
	for text, want := range map[string][]string{
		"source=a":              {"a"},
		"source=a,b":            {"a", "b"},
		`source="a,b",c`:        {"a,b", "c"},
		`source="say ""hi"""`:   {`say "hi"`},
		"source=a=b":            {"a=b"},
		"source= a ":            {" a "},
		"user_identifier=+155":  {"+155"},
		"source=":               {""},
		"source=\"a\r\nb\n\"":   {"a\r\nb\n"},
		"source=\"\",,\"\"\"\"": {"", "", `"`},
		"source":                nil, `source="a`: nil, "source=a\nb": nil, `source="a"b`: nil, `source=a"b`: nil,
	} {
		got, err := ParseFilter(text)
		if (err != nil) != (want == nil) || !slices.Equal(got.Values, want) {
			t.Errorf("%q: %q, %v", text, got.Values, err)
		}
		if again, err := ParseFilter(FilterText(got.Member, got.Values...)); want != nil && (err != nil ||
			!slices.Equal(again.Values, want)) {
			t.Errorf("%q is written and read again as %q, %v", text, again.Values, err)
		}
	}
	if _, err := ParseFilter("source=a\nb"); err == nil || !strings.Contains(err.Error(), "a line break in quotes") {
		t.Errorf("of a line break it says: %v", err)
	}
}

func TestQuestionsAreChecked(t *testing.T) {
	good := Question{Model: "agent_runs", Metrics: []string{"run_count"}, Timezone: "UTC", Limit: 100, WeekStart: "monday"}
	for name, c := range map[string]struct {
		change func(*Question)
		says   string
	}{
		"no metrics": {func(q *Question) { q.Metrics = nil }, "--metrics"},
		"no limit":   {func(q *Question) { q.Limit = 0 }, "--limit"},
		"direction": {func(q *Question) { q.Dimensions, q.Order = []string{"day"}, []string{"day:down"} },
			"MEMBER:desc"},
		"grain of days": {func(q *Question) { q.Dimensions, q.Grain = []string{"day"}, "week" }, "exclude each other"},
		"top 501": {func(q *Question) { q.Dimensions, q.Order, q.Limit = []string{"day"}, []string{"run_count"}, 501 },
			"at most 500"},
		"weekdays of nothing": {func(q *Question) { q.Weekdays = true }, "--weekdays"},
		"fill nothing":        {func(q *Question) { q.Fill = true }, "needs the dimension day"},
		"fill the top": {func(q *Question) { q.Fill, q.Dimensions, q.Order = true, []string{"day"}, []string{"run_count"} },
			"exclude each other"},
		"fill day first": {func(q *Question) {
			q.Fill, q.Dimensions, q.Order = true, []string{"day", "user_type"}, []string{"day"}
		}, "last member of --order"},
		"fill weeks of": {func(q *Question) { q.Fill, q.Dimensions, q.Grain = true, []string{"user_type"}, "week" },
			"without dimensions only"},
		"filter of what": {func(q *Question) { q.Filter = []string{"day"} }, "MEMBER=VALUE"},
		"grain of what":  {func(q *Question) { q.Grain = "day" }, "--grain day"},
		"compare with":   {func(q *Question) { q.Compare = "week" }, "--compare week"},
		"first day":      {func(q *Question) { q.WeekStart = "Monday" }, "--week-start Monday"},
		"fill in order":  {func(q *Question) { q.Fill, q.Dimensions = true, []string{"day", "user_type"} }, ""},
		"fill totals":    {func(q *Question) { q.Fill, q.Grain = true, "week" }, ""},
		"top 500 of all": {func(q *Question) {
			q.Dimensions, q.Order, q.Limit, q.All = []string{"day"}, []string{"run_count"}, 900, true
		}, ""},
		"fill descending": {func(q *Question) { q.Fill, q.Dimensions, q.Order = true, []string{"day"}, []string{"day:desc"} },
			""},
		"completed orders": {func(q *Question) {
			q.Fill, q.Dimensions, q.Order = true, []string{"user_type", "day"}, []string{"user_type:desc"}
		}, ""},
	} {
		q := good
		c.change(&q)
		_, err := q.Build(spanOf("2026-01-01", "2026-01-31"))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChanges(t *testing.T) {
	value := func(text string) (v client.Value) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range [][4]string{
		{`9007199254740993`, `1`, `9007199254740992`, `900719925474099200`},
		{`3`, `4`, `-1`, `-25`}, {`0.9`, `0.85`, `0.05`, `5.88`}, {`1`, `0`, `1`, `null`}, {`0`, `0`, `0`, `null`},
		{`null`, `0.5`, `null`, `null`}, {`0.5`, `null`, `null`, `null`}, {`-1`, `-2`, `1`, `50`}, {`1`, `3`, `-2`, `-66.67`},
		{`801`, `800`, `1`, `0.13`}, {`799`, `800`, `-1`, `-0.13`}, {`99999`, `100000`, `-1`, `0`},
	} {
		a, b := value(c[0]), value(c[1])
		d, _ := json.Marshal(difference(a, b))
		p, _ := json.Marshal(percent(a, b))
		if string(d) != c[2] || c[0] != "9007199254740993" && string(p) != c[3] {
			t.Errorf("%s after %s: %s, %s, want %s, %s", c[0], c[1], d, p, c[2], c[3])
		}
	}
}
