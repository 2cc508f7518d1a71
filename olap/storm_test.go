package olap_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

var (
	stormHistories = flag.Int("storm.histories", 10, "histories of TestStorm")
	stormSeed      = flag.Int("storm.seed", 0, "seed of the first history of TestStorm")
	stormVerbose   = flag.Bool("storm.verbose", false, "tell every step of TestStorm")
)

// stormPaths are what the histories must have come through, if there are many.
var stormPaths = []string{
	"reads base", "reads rollup_rows", "reads rollup_aggregates", "reads cached_answer",
	"delta none", "delta inline", "delta cached", "page single", "page first", "page next", "a refresh in progress",
	"refuted one_page", "refuted idle", "refuted delta_holds", "refuted rollup_unaltered", "refuted keys_distinct",
	"store", "store twice", "store, in flight", "store fails", "rows of a failed insert", "ask", "refresh",
	"refresh a part", "resolve", "purge", "rebuild", "follow", "restart", "check", "merge", "time passes",
	"the clock is set forward", "the clock is set back",
	"ask, held", "ask, delayed", "ask, repeated", "refresh, held", "refresh, repeated", "resolve, held",
	"purge, held", "rebuild, held",
}

// Whatever happens to a store that two servers answer from, held, delayed and repeated statements, refreshes, purges,
// rebuilds, inserts that fail, jumps of the clock: every answer is the one of a state that the store had between the
// question and the answer. A history is drawn from its number, so that it can be run again (-storm.seed).
func TestStorm(t *testing.T) {
	s := newStorm(t)
	played, sample := 0, olaptest.NewSample(3)
	for seed := *stormSeed; seed < *stormSeed+*stormHistories; seed++ {
		if !sample.Try() {
			continue
		}
		played++
		s.history(seed)
		if played%100 == 0 {
			t.Logf("%d histories, %d answers so far", played, s.answers)
		}
		if t.Failed() {
			t.Fatalf("run it again: go test ./olap -run 'TestStorm$' -storm.verbose -storm.histories 1 -storm.seed %d", seed)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.paths)) {
		t.Logf("%6d %s", s.paths[path], path)
	}
	t.Logf("%d histories, %d answers, %d compared with the oracle, 0 different", played, s.answers, s.judged)
	for _, path := range stormPaths {
		if s.paths[path] == 0 && played >= 500 {
			t.Errorf("no history came through: %s", path)
		}
	}
}

// An asked is a question and its answer.
type asked struct {
	server       int
	organization string
	query        olaptest.Query
	page         *asked // the page before; nil for the first one

	begin, end int  // how many changes there were
	excused    bool // the store was between two states that are told apart
	setBack    bool // the clock was, since the first page

	response
	strategy olap.Strategy
	err      error
	within   []olaptest.Boundary // what explains the answer
}

// run asks.
func (a *asked) run(engine *olap.Engine) {
	access := schema.WholeOrganization(schema.OrganizationID(a.organization))
	a.response, a.strategy, a.err = answered(engine, access, a.query.Body())
}

// judge holds the answer against every state that it may be of, and says what is wrong with it.
func (a *asked) judge(truth *olaptest.Truth) string {
	asOf, err := time.Parse(time.RFC3339, a.AsOf)
	if err != nil {
		return err.Error()
	}
	var boundaries []olaptest.Boundary
	var last []any
	if a.page == nil {
		for n := a.begin; n <= a.end; n++ {
			boundaries = append(boundaries, olaptest.Boundary{Changes: n, AsOf: asOf})
		}
	} else {
		if a.AsOf != a.page.AsOf {
			return "asOf changed from page to page"
		}
		boundaries, last = slices.Clone(a.page.within), a.page.Rows[len(a.page.Rows)-1]
		if a.setBack {
			boundaries = append(boundaries, olaptest.Boundary{AsOf: asOf, SetBack: true})
		}
	}
	slices.Reverse(boundaries)
	for _, b := range boundaries {
		for after := a.end; after >= a.begin; after-- {
			if a.is(truth.Evaluate(a.organization, a.query, b, after), last) {
				a.within = append(a.within, b)
				break
			}
		}
	}
	if len(a.within) > 0 {
		return ""
	}
	return "it is of no state between the question and the answer"
}

// is reports whether the answer is a page of rows, after the last row of the page before.
func (a *asked) is(rows [][]any, last []any) bool {
	rows = olaptest.After(rows, last, a.query)
	further := len(rows) > a.query.Limit
	if further {
		rows = rows[:a.query.Limit]
	}
	if further && a.pages() != (a.Cursor != nil) {
		return false
	}
	return len(rows) == len(a.Rows) && (len(rows) == 0 || reflect.DeepEqual(rows, a.Rows))
}

// pages reports whether further rows are on further pages: not in an order by a metric.
func (a *asked) pages() bool {
	return !slices.ContainsFunc(a.query.Order, func(term olaptest.Term) bool {
		return slices.Contains(a.query.Metrics, term.Member)
	})
}

// tell describes a wrong answer.
func (a *asked) tell(truth *olaptest.Truth, wrong string) string {
	body, _ := json.Marshal(a.query)
	asOf, _ := time.Parse(time.RFC3339, a.AsOf)
	text := fmt.Sprintf("%s: %s\nserver %d, %+v, asOf %s, changes %d to %d\n%s\n got %v, cursor %t", a.organization, wrong,
		a.server, a.strategy, a.AsOf, a.begin, a.end, body, a.Rows, a.Cursor != nil)
	for n := a.begin; n <= a.end; n++ {
		text += fmt.Sprintf("\nwant %v after %d", truth.Evaluate(a.organization, a.query,
			olaptest.Boundary{Changes: n, AsOf: asOf.AddDate(1, 0, 0)}, n), n)
	}
	return text
}

// paths are what the answer came through.
func (a *asked) paths() []string {
	paths := []string{"reads " + a.strategy.Reads, "page " + a.strategy.Page}
	if a.strategy.Delta != "" {
		paths = append(paths, "delta "+a.strategy.Delta)
	}
	if a.strategy.Refreshing {
		paths = append(paths, "a refresh in progress")
	}
	for _, refuted := range a.strategy.Refuted {
		paths = append(paths, "refuted "+refuted)
	}
	return paths
}

// A stormDraw draws what happens in a history.
type stormDraw struct{ *rand.Rand }

func (d stormDraw) oneIn(n int) bool { return d.IntN(n) == 0 }

// weighted draws a word of a text as often as it is in it.
func (d stormDraw) weighted(words string) string {
	all := strings.Fields(words)
	return all[d.IntN(len(all))]
}
