package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client/report"
)

// pythonText is a program that makes a frame of the answer to a question.
const pythonText = `from runlens import Client, Question

client = Client(%s)  # the key is in RUNLENS_API_KEY
answer = client.ask(Question(
%s))
frame = answer.to_pandas()  # or to_polars(); answer.rows needs neither
`

// python is empty for a question that Python's client can't ask: one with two filters on one member.
func python(q report.Question, server string) string {
	filtered, filters := make(map[string]bool), make([]string, len(q.Filter))
	for i, text := range q.Filter {
		f, err := report.ParseFilter(text)
		if err != nil || filtered[f.Member] {
			return ""
		}
		filtered[f.Member] = true
		filters[i] = strconv.Quote(f.Member) + ": " + pythonList(f.Values)
	}
	var arguments strings.Builder
	q = withoutDefaults(limited(q))
	q.All = false // it asks for all rows unless it has a limit
	for name, field := range fieldsOf(&q) {
		if field.IsZero() {
			continue
		}
		value := ""
		switch v := field.Interface().(type) {
		case bool:
			value = "True"
		case []string:
			value = pythonList(v)
		case string:
			value = strconv.Quote(v)
		default:
			value = fmt.Sprint(v)
		}
		if name == "filter" {
			name, value = "filters", "{"+strings.Join(filters, ", ")+"}"
		}
		fmt.Fprintf(&arguments, "    %s=%s,\n", strings.ReplaceAll(name, "-", "_"), value)
	}
	return output.PrintableSource(fmt.Sprintf(pythonText, strconv.Quote(server), arguments.String()))
}

// pythonList has texts as Go quotes them, whose escapes are Python's too.
func pythonList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
