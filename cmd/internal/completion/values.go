package completion

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/daterange"
)

// offeredValues is how many values of a dimension are offered: those with the most of the model's first metric.
const offeredValues = 200

// A finder returns the words that may stand in the place of the line's text, and others.
type finder func(context.Context, *Line) []string

// Values says where values come from.
type Values struct {
	// Server is the client of the server that a command line names.
	Server func(*Line) (*client.Client, error)
	// Home has profiles and saved questions.
	Home profile.Folder
	// Cache is a folder for the names of members. It need not exist; empty for none.
	Cache string
	Now   func() time.Time
}

// finders are those of flags and arguments, by their names.
func (v Values) finders() map[string]finder {
	own := func(read func() ([]string, error), before string) finder {
		return func(context.Context, *Line) (words []string) {
			names, _ := read()
			for _, name := range names {
				words = append(words, before+name)
			}
			return words
		}
	}
	return map[string]finder{
		"model": v.models, "metrics": v.metrics, "dimensions": v.dimensions, "order": v.order, "filter": v.filter,
		"timezone": func(context.Context, *Line) []string { return daterange.Zones() },
		"profile":  own(v.Home.Profiles, ""),
		"saved":    own(v.Home.Questions, "@"),
	}
}

func (v Values) models(ctx context.Context, l *Line) (words []string) {
	for _, m := range v.catalog(ctx, l).Models {
		words = appendMember(words, m.Name, "", m.Description)
	}
	return words
}

// model is the one that --model names. It has no members if there is none.
func (v Values) model(ctx context.Context, l *Line) client.Model {
	return members.ModelOf(v.catalog(ctx, l), l.Value("model"))
}

func metrics(m client.Model) (words []string) {
	for _, metric := range m.Metrics {
		words = appendMember(words, metric.Name, "", metric.Description)
	}
	return words
}

func dimensions(m client.Model) (words []string) {
	for _, dimension := range m.Dimensions {
		words = appendMember(words, dimension.Name, "", dimension.Description)
	}
	return words
}

func (v Values) metrics(ctx context.Context, l *Line) []string {
	return listed(metrics(v.model(ctx, l)), l.text)
}

func (v Values) dimensions(ctx context.Context, l *Line) []string {
	return listed(dimensions(v.model(ctx, l)), l.text)
}

// order offers what is selected, else all members of the model, and after a member its directions.
func (v Values) order(ctx context.Context, l *Line) []string {
	before, last := cutLast(l.text)
	if member, _, ok := strings.Cut(last, ":"); ok {
		return []string{before + member + ":" + string(client.Asc), before + member + ":" + string(client.Desc)}
	}
	if selected := slices.Concat(l.list("dimensions"), l.list("metrics")); len(selected) > 0 {
		return listed(selected, l.text)
	}
	m := v.model(ctx, l)
	return listed(slices.Concat(dimensions(m), metrics(m)), l.text)
}

// filter offers dimensions, and after the equals sign the values that there have been.
func (v Values) filter(ctx context.Context, l *Line) (words []string) {
	m := v.model(ctx, l)
	if member, list, ok := strings.Cut(l.text, "="); ok {
		for _, word := range listed(v.dimensionValues(ctx, l, m, member), list) {
			words = append(words, member+"="+word)
		}
		return words
	}
	for _, dimension := range m.Dimensions {
		words = appendMember(words, dimension.Name, "=", dimension.Description)
	}
	return words
}

// dimensionValues are the most frequent ones of as many days as the API allows. A companion, such as the name of an
// agent, describes them.
func (v Values) dimensionValues(ctx context.Context, l *Line, m client.Model, member string) (words []string) {
	server, err := v.Server(l)
	if err != nil || len(m.Metrics) == 0 {
		return nil
	}
	today := v.Now().UTC()
	page, err := server.Query(ctx, client.Query{
		Model: m.Name, Metrics: []string{m.Metrics[0].Name}, Dimensions: []string{member},
		Range: client.Range{Start: today.AddDate(0, 0, 1-client.MaxRangeDays).Format(time.DateOnly),
			End: today.Format(time.DateOnly), Timezone: "UTC"},
		Order: []client.OrderTerm{{Member: m.Metrics[0].Name, Direction: client.Desc}}, Limit: offeredValues,
	})
	if err != nil {
		return nil
	}
	for _, row := range page.Rows {
		word := row[0].String()
		if row[0].IsNull() || strings.ContainsFunc(word, special) {
			continue // no filter finds null
		}
		if len(row) > 2 && !row[1].IsNull() {
			word = described(word, row[1].String())
		}
		words = append(words, word)
	}
	return words
}

// appendMember offers a name of the catalog, with what is typed after it.
func appendMember(words []string, name, after, description string) []string {
	if strings.ContainsFunc(name, special) {
		return words
	}
	return append(words, described(name+after, description))
}

// special characters mean something to a shell or to the list of a filter. Values and names with them come from other
// people, and are not offered: a Tab must not write a command.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@._:+/-", r)
}

// listed are the different words that may stand after the last comma of a list, each with what is before it, and
// without those that are in it.
func listed(words []string, text string) (lists []string) {
	before, _ := cutLast(text)
	taken := strings.Split(before, ",")
	for _, word := range words {
		if name, _, _ := strings.Cut(word, "\t"); !slices.Contains(taken, name) {
			lists, taken = append(lists, before+word), append(taken, name)
		}
	}
	return lists
}

// cutLast splits a list before its last element.
func cutLast(text string) (before, last string) {
	at := strings.LastIndexByte(text, ',') + 1
	return text[:at], text[at:]
}
