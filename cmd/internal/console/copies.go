package console

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A snippet asks the same question from elsewhere. It never has the key.
type snippet struct {
	Name, Text string
	Note       string // what it lacks of the page's rows; empty for nothing
}

// copies are the question of the rows, or of the totals where there are none, in the languages that ask the API.
func (c *Console) copies(s *shown) []snippet {
	a := s.totals
	if s.rows != nil {
		a = s.rows
	}
	run := report.Run{Question: a.question}
	if run.Check(c.Now()) != nil {
		return nil // it was answered before
	}
	queries := run.Queries()
	saved, err := savedText(withoutDefaults(s.look.Question))
	if err != nil {
		return nil
	}
	note := ""
	if a.facts.Pages > len(queries) {
		note = fmt.Sprintf("This asks for the first %d rows. The cursor of an answer asks for the next ones.",
			client.MaxLimit)
	}
	all := []snippet{
		{Name: "CLI", Text: commandLine(a.question, c.Client.URL())},
		{Name: "curl", Text: curl(queries, c.Client.URL()), Note: note},
		{Name: "Python", Text: python(a.question, c.Client.URL())},
		{Name: "Go", Text: goProgram(queries, c.Client.URL())},
		{Name: "TypeScript", Text: typeScript(queries, c.Client.URL())},
		{Name: "YAML", Text: "# a saved question: ~/.config/runlens/queries/NAME.yaml, or a panel of a dashboard\n" + saved},
	}
	return slices.DeleteFunc(all, func(s snippet) bool { return s.Text == "" })
}

func withoutDefaults(q report.Question) report.Question {
	defaults := report.Default()
	plain := maps.Collect(fieldsOf(&defaults))
	for name, field := range fieldsOf(&q) {
		if name != "model" && reflect.DeepEqual(field.Interface(), plain[name].Interface()) {
			field.SetZero()
		}
	}
	return q
}

// limited is the question without a limit where all rows are asked for.
func limited(q report.Question) report.Question {
	if q.All {
		q.Limit = 0
	}
	return q
}

// commandLine is the question as flags of runlens query.
func commandLine(q report.Question, server string) string {
	var b strings.Builder
	b.WriteString("runlens query --url=" + output.Quoted(server))
	q = withoutDefaults(limited(q))
	for name, field := range fieldsOf(&q) {
		if field.IsZero() {
			continue
		}
		switch v := field.Interface().(type) {
		case bool:
			b.WriteString(" --" + name)
		case []string:
			if name == "filter" {
				for _, filter := range v {
					b.WriteString(" --filter=" + output.Quoted(filter))
				}
				continue
			}
			b.WriteString(" --" + name + "=" + output.Quoted(strings.Join(v, ",")))
		default:
			fmt.Fprintf(&b, " --%s=%s", name, output.Quoted(fmt.Sprint(v)))
		}
	}
	return b.String()
}

// literal is a value of ours as JSON, in printable characters alone.
func literal(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts and numbers only
	return output.Printable(strings.TrimSpace(b.String()))
}

// savedText is the content of a saved question. Texts that have hidden characters are quoted, for only then YAML can
// spell them out.
func savedText(q report.Question) (string, error) {
	var node yaml.Node
	if err := node.Encode(q); err != nil {
		return "", err
	}
	quoteHidden(&node)
	text, err := yaml.Marshal(&node)
	return output.PrintableSource(string(text)), err
}

func quoteHidden(node *yaml.Node) {
	if strings.ContainsFunc(node.Value, output.Hidden) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteHidden(child)
	}
}

func curl(queries []client.Query, server string) string {
	var b strings.Builder
	for i, q := range queries {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "curl -s %s \\\n  -H \"Authorization: Bearer $RUNLENS_API_KEY\" \\\n"+
			"  -H 'Content-Type: application/json' \\\n  -d %s\n",
			output.Quoted(server+"/api/v1/analytics/query"), output.Quoted(literal(q)))
	}
	return b.String()
}

// goText is a program that prints the rows of the queries.
const goText = `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/runlens/runlens/http/client"
)

func main() {
	c, err := client.New(client.Config{URL: %q, Key: os.Getenv("RUNLENS_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range []client.Query{
%s	} {
		for page, err := range c.Pages(context.Background(), q) {
			if err != nil {
				log.Fatal(err)
			}
			for _, row := range page.Rows {
				fmt.Println(row)
			}
		}
	}
}
`

func goProgram(queries []client.Query, server string) string {
	var literals strings.Builder
	for _, q := range queries {
		literals.WriteString("{\n")
		for field, value := range reflect.ValueOf(q).Fields() {
			if !value.IsZero() {
				fmt.Fprintf(&literals, "%s: %#v,\n", field.Name, value.Interface())
			}
		}
		literals.WriteString("},\n")
	}
	text, err := format.Source(fmt.Appendf(nil, goText, server, literals.String()))
	if err != nil {
		return err.Error() // it is no Go, which a test would find
	}
	return output.PrintableSource(string(text))
}

func typeScript(queries []client.Query, server string) string {
	var b strings.Builder
	b.WriteString("import { Runlens, type Query } from \"runlens-client\";\n\n")
	fmt.Fprintf(&b, "const runlens = new Runlens({ url: %s, key: process.env.RUNLENS_API_KEY ?? \"\" });\n",
		literal(server))
	b.WriteString("const queries: Query[] = [\n")
	for _, q := range queries {
		b.WriteString("  " + literal(q) + ",\n")
	}
	b.WriteString("];\nfor (const query of queries) {\n  for await (const page of runlens.pages(query)) {\n" +
		"    for (const row of page.rows) console.log(row);\n  }\n}\n")
	return b.String()
}

// downloads are the formats of files, besides the pictures that the browser makes.
var downloads = []struct{ name, text, kind string }{
	{"csv", "CSV", "text/csv; charset=utf-8"},
	{"xlsx", "Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"parquet", "Parquet", "application/vnd.apache.parquet"},
}

// download answers the rows as a file: those that the page shows, without the bound of its table.
func (c *Console) download(w http.ResponseWriter, r *http.Request) {
	l, err := c.parseLook(r.URL.Query())
	if err != nil {
		c.failure(w, r, http.StatusBadRequest, err.Error())
		return
	}
	for _, format := range downloads {
		if format.name != r.URL.Query().Get("format") {
			continue
		}
		s, err := c.show(r.Context(), l, fresh)
		if err == nil && s.failed != nil {
			err = s.failed
		}
		if err != nil {
			c.failure(w, r, http.StatusBadGateway, err.Error())
			return
		}
		a := s.totals
		if s.rows != nil {
			a = s.rows
		}
		w.Header().Set("Content-Type", format.kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="runlens-%s-%s.%s"`, l.Model,
			strings.ReplaceAll(s.span.String(), " ", "-"), format.name))
		_ = writeFile(w, format.name, a) // nobody is left to tell
		return
	}
	c.failure(w, r, http.StatusNotFound, "There is no such format.")
}

func writeFile(w http.ResponseWriter, format string, a *answer) error {
	out, err := output.New(format, w, output.Options{})
	if err != nil {
		return err
	}
	if err := out.Head(a.columns); err != nil {
		return err
	}
	for _, row := range a.rows {
		if err := out.Row(row); err != nil {
			return err
		}
	}
	return out.End(a.facts)
}
