package olap_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
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

func engineWith(conn driver.Conn, options plan.Options) *olap.Engine {
	e := olap.NewEngine(conn, []byte("secret"))
	e.Use(options)
	return e
}

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

func execute(t olaptest.Failer, conn driver.Conn, statement string, args ...any) {
	t.Helper()
	if err := conn.Exec(context.Background(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// merge merges the parts of records and of the rollup, but for partitions that have one merged part.
func merge(t olaptest.Failer, conn driver.Conn) {
	t.Helper()
	for _, table := range []string{"runs", "attributions", "rollup_runs", "rollup_attributions"} {
		execute(t, conn, "OPTIMIZE TABLE "+table+" FINAL SETTINGS optimize_skip_merged_partitions = 1")
	}
}

// acme is the access to all of acme.
var acme = schema.WholeOrganization("acme")

// request is one on behalf of an access.
func request(access schema.Access, body []byte) (olap.Request, error) {
	parsed, err := query.Parse(body)
	return olap.Request{Access: access, Query: parsed, QueryID: uuid.New()}, err
}

// answered asks a question, and says also how it was answered.
func answered(engine *olap.Engine, access schema.Access, body []byte) (r response, by olap.Strategy, err error) {
	asked, err := request(access, body)
	if err != nil {
		return r, by, err
	}
	result, err := engine.Run(context.Background(), asked)
	if err != nil {
		return r, by, err
	}
	return r, result.Strategy(), json.Unmarshal(result.AppendJSON(nil), &r)
}

func ask(t olaptest.Failer, engine *olap.Engine, organization string, q olaptest.Query) response {
	t.Helper()
	r, _, err := answered(engine, schema.WholeOrganization(schema.OrganizationID(organization)), q.Body())
	if err != nil {
		t.Fatal(string(q.Body()), err)
	}
	return r
}

// all are the rows of every page of an answer.
func all(t olaptest.Failer, engine *olap.Engine, organization string, q olaptest.Query) [][]any {
	t.Helper()
	rows, err := allAs(engine, schema.WholeOrganization(schema.OrganizationID(organization)), q)
	if err != nil {
		t.Fatal(string(q.Body()), err)
	}
	return rows
}

// allAs is all for an access. It follows the cursors of a query to its last page.
func allAs(engine *olap.Engine, access schema.Access, q olaptest.Query) (rows [][]any, err error) {
	for asOf := ""; ; {
		page, _, err := answered(engine, access, q.Body())
		switch {
		case err != nil:
			return nil, err
		case asOf != "" && page.AsOf != asOf:
			return nil, fmt.Errorf("asOf changed from %s to %s", asOf, page.AsOf)
		case asOf != "" && len(page.Rows) == 0:
			return nil, errors.New("the page before had a cursor although no further row exists (contract 4.3)")
		}
		rows = append(rows, page.Rows...)
		if page.Cursor == nil {
			return rows, nil
		}
		if len(page.Rows) != q.Limit {
			return nil, fmt.Errorf("a page with a cursor has %d rows, not %d", len(page.Rows), q.Limit)
		}
		asOf, q.Cursor = page.AsOf, *page.Cursor
	}
}

// organizations counts those that properties were drawn for: each has a name of its own.
var organizations atomic.Int64

// drawn are the records of another organization.
func drawn(t *rapid.T) (organization string, records olaptest.Records) {
	organization = fmt.Sprintf("org-%d", organizations.Add(1))
	records = olaptest.DrawRecords(t, organization)
	if !olaptest.UniqueLiveSlugs(records, organization) {
		t.Skip("two agents that are not deleted have one slug")
	}
	return organization, records
}

// Whatever was copied, in whatever order and however often, the compiled SQL answers what the spec's plainest reading
// answers, also as statements of large organizations do; pages concatenate to the complete answer; and the rows of
// other organizations, which have the same identities here, change nothing. No option changes an answer.
func TestAnswersEqualTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	var engines []*olap.Engine
	for _, options := range everyOption() {
		engines = append(engines, engineWith(store.Conn(), options))
	}
	refresher := rollup.New(store.Conn(), quiet, 0)
	checkProperty(t, 2, func(t *rapid.T) {
		organization, records := drawn(t)
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
	want, got := expected(olaptest.Key{}, records, organization, q), all(t, engine, organization, q)
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("query %s\n got %v\nwant %v", q.Body(), got, want)
	}
}
