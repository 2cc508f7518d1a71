package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/http/client"
)

// A Question is what a person asks for: the flags of runlens query, and the content of a saved question. Errors name
// fields as these flags. Begin with Default. The command has the texts that a tag names, such as help:"@start".
type Question struct {
	Model      string   `yaml:"model,omitempty" default:"agent_runs" help:"The model."`
	Metrics    []string `yaml:"metrics,omitempty" help:"Comma-separated metrics."`
	Dimensions []string `yaml:"dimensions,omitempty" help:"Comma-separated dimensions; without any it is a totals query."`
	Filter     []string `yaml:"filter,omitempty" sep:"none" placeholder:"MEMBER=VALUE" help:"@filter"`
	Start      string   `yaml:"start,omitempty" placeholder:"DAY" help:"@start"`
	End        string   `yaml:"end,omitempty" placeholder:"DAY" help:"Last day, YYYY-MM-DD. Default: today in --timezone."`
	Last       string   `yaml:"last,omitempty" placeholder:"30d|12w|13mo" help:"@last"`
	Today      bool     `yaml:"today,omitempty" help:"Only today in --timezone."`
	Yesterday  bool     `yaml:"yesterday,omitempty" help:"Only yesterday in --timezone."`
	Timezone   string   `yaml:"timezone,omitempty" default:"UTC" help:"IANA timezone of the days."`
	Order      []string `yaml:"order,omitempty" placeholder:"MEMBER[:desc]" help:"Comma-separated order."`
	Limit      int      `yaml:"limit,omitempty" default:"100" help:"@limit"`
	All        bool     `yaml:"all,omitempty" help:"All rows, whatever --limit says."`
	Grain      string   `yaml:"grain,omitempty" enum:",week,month" default:"" placeholder:"week|month" help:"@grain"`
	WeekStart  string   `yaml:"week-start,omitempty" enum:"${weekdays}" default:"monday" help:"@week_start"`

	// Compare adds columns for an earlier period.
	Compare string `yaml:"compare,omitempty" enum:",previous,year" default:"" placeholder:"previous|year" help:"@compare"`

	Weekdays bool `yaml:"weekdays,omitempty" help:"@weekdays"`

	Fill   bool     `yaml:"fill,omitempty" help:"@fill"`
	FailIf []string `yaml:"fail-if,omitempty" sep:"none" placeholder:"'METRIC < NUMBER'" help:"@fail_if"`

	// MinCount is for FailIf.
	MinCount int `yaml:"min-count,omitempty" placeholder:"N" help:"@min_count"`
}

// Default is a question of which only Metrics are missing, with the defaults of runlens query.
func Default() Question {
	return Question{Model: "agent_runs", Timezone: "UTC", Limit: defaultLimit, WeekStart: "monday"}
}

// Build checks what the server cannot know and returns the query of the span, without a limit.
func (q Question) Build(span Span) (client.Query, error) {
	built := client.Query{Model: q.Model, Metrics: q.Metrics, Dimensions: q.Dimensions, Range: span.in(q.Timezone)}
	if len(q.Metrics) == 0 {
		return built, errors.New("--metrics is needed, such as --metrics run_count; the catalog names them")
	}
	if err := q.checkWords(); err != nil {
		return built, err
	}
	if q.Limit < 1 {
		return built, errors.New("--limit must be at least 1")
	}
	if q.MinCount < 0 {
		return built, errors.New("--min-count must be at least 0")
	}
	for _, text := range q.Filter {
		filter, err := ParseFilter(text)
		if err != nil {
			return built, err
		}
		built.Filters = append(built.Filters, filter)
	}
	for _, text := range q.Order {
		member, direction, ok := strings.Cut(text, ":")
		if !ok {
			direction = string(client.Asc)
		}
		if direction != string(client.Asc) && direction != string(client.Desc) {
			return built, fmt.Errorf("--order %s must be MEMBER, MEMBER:asc or MEMBER:desc", text)
		}
		built.Order = append(built.Order, client.OrderTerm{Member: member, Direction: client.Direction(direction)})
	}
	return built, q.checkTogether(&built)
}

// checkWords checks the words of a saved question; those of the command line are checked already.
func (q Question) checkWords() error {
	for _, flag := range []struct {
		name, value string
		words       []string
	}{
		{"grain", q.Grain, []string{"", "week", "month"}},
		{"week-start", q.WeekStart, weekdays},
		{"compare", q.Compare, []string{"", "previous", "year"}},
	} {
		if !slices.Contains(flag.words, flag.value) {
			return fmt.Errorf("--%s %s must be one of %s", flag.name, flag.value, strings.Join(flag.words, " "))
		}
	}
	return nil
}

// checkTogether checks flags that depend on each other, and orders the rows as they need it.
func (q Question) checkTogether(built *client.Query) error {
	byDay := slices.Contains(q.Dimensions, "day")
	top := built.Order != nil && byMetric(*built)
	switch {
	case q.Weekdays && (q.Compare == "" || q.Grain != ""):
		return errors.New("--weekdays is for --compare without --grain; weeks have the same weekdays anyway")
	case q.Grain != "" && byDay:
		return fmt.Errorf("--grain %s and the dimension day exclude each other", q.Grain)
	case top && q.Limit > client.MaxLimit && !q.All:
		return fmt.Errorf("--limit must be at most %d in the order of a metric", client.MaxLimit)
	case (q.Fill || q.Compare != "") && onDay(*built): // other days are left out
		return errors.New("a filter on day excludes --fill and --compare; name the days with --start and --end instead")
	case !q.Fill:
		return nil
	case q.Grain != "" && len(q.Dimensions) > 0:
		return errors.New("--fill fills days; with --grain it works without dimensions only")
	case q.Grain == "" && !byDay:
		return errors.New("--fill needs the dimension day")
	case q.Grain != "":
		return nil // a totals query has its row in any case
	case top:
		return errors.New("--fill and the order of a metric exclude each other")
	}
	if len(built.Order) == 0 {
		for _, dimension := range q.Dimensions {
			if dimension != "day" {
				built.Order = append(built.Order, client.OrderTerm{Member: dimension, Direction: client.Asc})
			}
		}
		built.Order = append(built.Order, client.OrderTerm{Member: "day", Direction: client.Asc})
	}
	if terms := completeOrder(*built); terms[len(terms)-1].Member != "day" {
		return errors.New("--fill needs day as the last member of --order")
	}
	return nil
}

// ParseFilter reads MEMBER=VALUE,… where a value may be quoted as in CSV.
func ParseFilter(text string) (client.Filter, error) {
	member, list, ok := strings.Cut(text, "=")
	if !ok {
		return client.Filter{}, fmt.Errorf("--filter %s must be MEMBER=VALUE", text)
	}
	if list == "" {
		return client.In(member, ""), nil // the server says what is wrong with it
	}
	list = strings.TrimSuffix(strings.TrimSuffix(list, "\n"), "\r") // of a block in YAML
	var values []string
	for more := true; more; {
		var value string
		if value, list, more, ok = cutValue(list); !ok {
			return client.Filter{}, fmt.Errorf(
				"--filter %s: put a value with a comma, a quote or a line break in quotes: \"a,b\", \"a\"\"b\"", text)
		}
		values = append(values, value)
	}
	return client.In(member, values...), nil
}

// cutValue cuts a list behind its first value, as encoding/csv does, which would change line breaks in it.
func cutValue(list string) (value, rest string, more, ok bool) {
	quoted, rest := "", list
	for strings.HasPrefix(rest, `"`) {
		part, after, closed := strings.Cut(rest[1:], `"`)
		if !closed {
			return "", "", false, false
		}
		if quoted, rest = quoted+part, after; strings.HasPrefix(rest, `"`) {
			quoted += `"`
		}
	}
	plain, rest, more := strings.Cut(rest, ",")
	ok = !strings.ContainsAny(plain, "\"\r\n") && (plain == "" || !strings.HasPrefix(list, `"`))
	return quoted + plain, rest, more, ok
}

// FilterText is the text that ParseFilter reads as a filter on these values.
func FilterText(member string, values ...string) string {
	var list strings.Builder
	w := csv.NewWriter(&list)
	w.Write(values)
	w.Flush()
	return member + "=" + strings.TrimSuffix(list.String(), "\n")
}

// byMetric reports whether rows come in the order of a metric, and so on a single page.
func byMetric(q client.Query) bool {
	return slices.ContainsFunc(q.Order, func(term client.OrderTerm) bool {
		return !slices.Contains(q.Dimensions, term.Member)
	})
}

// onDay reports whether a filter is on the day.
func onDay(q client.Query) bool {
	return slices.ContainsFunc(q.Filters, func(f client.Filter) bool { return f.Member == "day" })
}

// completeOrder is the total order of a query's rows that has no metric in it (contract 4.2).
func completeOrder(q client.Query) []client.OrderTerm {
	terms := slices.Clone(q.Order)
	for _, dimension := range q.Dimensions {
		if !slices.ContainsFunc(terms, func(term client.OrderTerm) bool { return term.Member == dimension }) {
			terms = append(terms, client.OrderTerm{Member: dimension, Direction: client.Asc})
		}
	}
	return terms
}
