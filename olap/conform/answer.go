package conform

import (
	"fmt"
	"reflect"
	"strings"
)

// An Answer is one page, or a refusal.
type Answer struct {
	AsOf       string
	Start, End string // UTC bounds of the range, as the API writes instants
	Columns    []Column
	Rows       Rows
	Cursor     string // empty on the last page
	Warnings   []Warning

	FailCode, FailParam string // of a refusal; FailCode is empty for a page
}

// A Warning is spec 2.14's.
type Warning struct{ Code, Member, Message string }

// An Asker sends the body of a request for an organization. Its error says that there was no answer.
type Asker func(organization, body string) (Answer, error)

// A Runner asks the questions of one script in their order.
type Runner struct {
	Ask    Asker
	cursor string // of the last first page that had one and continued nothing
}

// cursorName stands in a body for the cursor of an earlier question's first page.
const cursorName = "@cursor"

// UsesCursor reports whether a question continues an earlier one.
func (s Step) UsesCursor() bool { return strings.Contains(s.Body, `"`+cursorName+`"`) }

// Check asks the question of a step, page by page, and returns what differs, nil for nothing. The error says that there
// was no answer.
func (r *Runner) Check(step Step) (differences []string, err error) {
	first, err := r.Ask(step.Organization, strings.ReplaceAll(step.Body, cursorName, r.cursor))
	if err != nil {
		return nil, err
	}
	if step.FailCode != "" {
		if first.FailCode != step.FailCode || first.FailParam != step.FailParam {
			return []string{fmt.Sprintf("got %s, want %s", first.outcome(), refusal(step.FailCode, step.FailParam))}, nil
		}
		return nil, nil
	}
	if first.Cursor != "" && !step.UsesCursor() {
		r.cursor = first.Cursor
	}
	page := first
	for i, want := range step.Pages {
		if i > 0 {
			if page.Cursor == "" {
				return append(differences, fmt.Sprintf("page %d: there is no cursor to it", i+1)), nil
			}
			if page, err = r.Ask(step.Organization, step.continued(page.Cursor)); err != nil {
				return differences, err
			}
			if page.AsOf != first.AsOf {
				differences = append(differences, fmt.Sprintf("page %d: asOf %s, want %s", i+1, page.AsOf, first.AsOf))
			}
		}
		for _, difference := range step.compare(page, want) {
			differences = append(differences, fmt.Sprintf("page %d: %s", i+1, difference))
		}
		if page.FailCode != "" {
			return differences, nil
		}
	}
	if more := page.Cursor != ""; more != step.More {
		differences = append(differences, fmt.Sprintf("another page follows: %t, want %t", more, step.More))
	}
	return differences, nil
}

// continued is the body of the page that a cursor continues.
func (s Step) continued(cursor string) string {
	if s.UsesCursor() {
		return strings.ReplaceAll(s.Body, cursorName, cursor)
	}
	return strings.TrimSuffix(s.Body, "}") + `, "cursor": "` + cursor + `"}`
}

// compare is what differs of one page.
func (s Step) compare(got Answer, rows Rows) (differences []string) {
	if got.FailCode != "" {
		return []string{fmt.Sprintf("got %s, want rows %v", got.outcome(), rows)}
	}
	differ := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			differences = append(differences, fmt.Sprintf("%s:\n got %v\nwant %v", what, got, want))
		}
	}
	differ("rows", got.Rows, rows)
	for _, row := range got.Rows {
		if len(row) != len(got.Columns) {
			differences = append(differences, fmt.Sprintf("%d values for %d columns", len(row), len(got.Columns)))
			break
		}
	}
	if s.Columns != nil {
		differ("columns", got.Columns, s.Columns)
	}
	if s.Start != "" {
		differ("range", got.Start+" "+got.End, s.Start+" "+s.End)
	}
	if s.Warnings != nil {
		members := []string{}
		for _, w := range got.Warnings {
			members = append(members, w.Member)
			if w.Code != "non_additive_metric" || w.Message == "" {
				differences = append(differences, fmt.Sprintf("a warning with code %q and message %q", w.Code, w.Message))
			}
		}
		differ("warnings", members, s.Warnings)
	}
	return differences
}

func (a Answer) outcome() string {
	if a.FailCode == "" {
		return fmt.Sprintf("rows %v", a.Rows)
	}
	return refusal(a.FailCode, a.FailParam)
}

func refusal(code, param string) string {
	if param == "" {
		return code + " without a param"
	}
	return code + " at " + param
}
