package olap_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// A response is spec 2.14 as a client reads it.
type response struct {
	CatalogVersion string
	AsOf           string
	Range          struct{ Start, End, Timezone, StartUtc, EndUtc string }
	Columns        []struct{ Name, Type, Member string }
	Rows           [][]any
	Cursor         *string
	Warnings       []struct{ Code, Member, Message string }
}

// Options of tests: every organization is taken for one with many records.
var (
	asLarge     = plan.Options{Records: 10_000_000}
	inlineDelta = plan.Options{Records: 10_000_000, NoCachedDelta: true}
)

// everyOption is the server's own set, that of an organization with many records, and each option alone of both.
func everyOption() (sets []plan.Options) {
	for _, records := range []uint64{0, asLarge.Records} {
		sets = append(sets, plan.Options{Records: records}, plan.Options{Records: records, NoOwnClock: true},
			plan.Options{Records: records, NoOwnClock: true, NoDerived: true})
	}
	return append(sets, inlineDelta, plan.Options{Records: asLarge.Records, NoRollup: true},
		plan.Options{Records: asLarge.Records, NoAggregates: true},
		plan.Options{Records: asLarge.Records, NoWindow: true},
		plan.Options{Records: asLarge.Records, NoPackedDays: true},
		plan.Options{Records: asLarge.Records, NoPairGroups: true})
}

// checks guards the flag of package rapid that says how many cases a test draws.
var checks sync.Mutex

// checkProperty draws one of n of the cases that -rapid.checks gives: n is greater where a case refreshes the rollup
// several times. Every property of this package is checked by it, because tests run side by side and the flag is one
// for all: it is another one until rapid has read it and draws its first case.
func checkProperty(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	checks.Lock()
	number := flag.Lookup("rapid.checks").Value
	before := number.String()
	restore := sync.OnceFunc(func() {
		number.Set(before)
		checks.Unlock()
	})
	defer restore()
	wanted, err := strconv.Atoi(before)
	if err == nil {
		err = number.Set(strconv.Itoa(max(1, wanted/n)))
	}
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		restore()
		property(t)
	})
}

// merge merges the parts of a table, but for partitions that have one merged part.
func merge(t olaptest.Failer, conn driver.Conn, table string) {
	t.Helper()
	sql := "OPTIMIZE TABLE " + table + " FINAL SETTINGS optimize_skip_merged_partitions = 1"
	if err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

func ask(t olaptest.Failer, engine *olap.Engine, organization string, q olaptest.Query) response {
	t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run(engine, organization, body)
	if err != nil {
		t.Fatal(string(body), err)
	}
	return r
}

func run(engine *olap.Engine, organization string, body []byte) (response, error) {
	r, _, err := runBy(engine, organization, body)
	return r, err
}

// runBy says also how a question was answered.
func runBy(engine *olap.Engine, organization string, body []byte) (r response, by olap.Strategy, err error) {
	parsed, err := query.Parse(body)
	if err != nil {
		return r, by, err
	}
	result, err := engine.Run(context.Background(), olap.Request{
		Access: schema.WholeOrganization(schema.OrganizationID(organization)), QueryID: uuid.New(), Query: parsed,
	})
	if err != nil {
		return r, by, err
	}
	return r, result.Strategy(), json.Unmarshal(result.AppendJSON(nil), &r)
}

// all follows the cursors of a query to its last page and returns the rows of every page.
func all(t olaptest.Failer, engine *olap.Engine, organization string, q olaptest.Query) [][]any {
	t.Helper()
	var rows [][]any
	asOf := ""
	for {
		page := ask(t, engine, organization, q)
		if asOf != "" && page.AsOf != asOf {
			t.Fatal("asOf changed from", asOf, "to", page.AsOf)
		}
		if asOf != "" && len(page.Rows) == 0 {
			t.Fatal("the page before had a cursor although no further row exists (contract 4.3)")
		}
		asOf = page.AsOf
		rows = append(rows, page.Rows...)
		if page.Cursor == nil {
			return rows
		}
		if len(page.Rows) != q.Limit {
			t.Fatal("a page with a cursor has", len(page.Rows), "rows, not", q.Limit)
		}
		q.Cursor = *page.Cursor
	}
}

// Whatever was copied, in whatever order and however often, the compiled SQL answers what the spec's plainest reading
// answers, also as statements of large organizations do; pages concatenate to the complete answer; and the rows of
// other organizations, which have the same identities here, change nothing. No option changes an answer.
func TestAnswersEqualTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	var engines []*olap.Engine
	for _, options := range everyOption() {
		e := olap.NewEngine(store.Conn(), []byte("secret"))
		e.Use(options)
		engines = append(engines, e)
	}
	refresher := rollup.New(store.Conn(), quiet, 0)
	organizations := 0
	checkProperty(t, 2, func(t *rapid.T) {
		organizations++
		organization := fmt.Sprintf("org-%d", organizations)
		records := olaptest.DrawRecords(t, organization)
		if !olaptest.UniqueLiveSlugs(records, organization) {
			t.Skip("two agents that are not deleted have one slug")
		}
		for _, batch := range records.Batches(t) {
			olaptest.Load(t, store.Conn(), batch)
			if rapid.IntRange(0, 3).Draw(t, "refresh") == 0 {
				refreshed(t, refresher)
			}
		}
		for range 10 {
			engine := rapid.SampledFrom(engines).Draw(t, "engine")
			compare(t, engine, records, organization, olaptest.DrawQuery(t))
		}
	})
}

// compare compares all pages of a query with the naive evaluator.
func compare(t *rapid.T, engine *olap.Engine, records olaptest.Records, organization string, q olaptest.Query) {
	want := olaptest.Evaluate(records, organization, q)
	metricOrdered := false
	for _, term := range q.Order {
		for _, m := range q.Metrics {
			metricOrdered = metricOrdered || m == term.Member
		}
	}
	if metricOrdered && len(want) > q.Limit {
		want = want[:q.Limit]
	}
	got := all(t, engine, organization, q)
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		body, _ := json.Marshal(q)
		t.Fatalf("query %s\n got %v\nwant %v", body, got, want)
	}
}
