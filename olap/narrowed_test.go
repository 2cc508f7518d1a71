package olap_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// accessOf is the access of a stored key of an organization that sees what k does.
func accessOf(t olaptest.Failer, organization string, k olaptest.Key) schema.Access {
	t.Helper()
	key := schema.APIKey{OrganizationID: schema.OrganizationID(organization), Scopes: []string{"analytics:read"}}
	if !reflect.DeepEqual(k, olaptest.Key{}) {
		r, err := schema.NewRestriction(schema.Restriction{
			Agents: k.Agents, People: k.People, Domains: k.Domains, MinPeople: k.MinPeople,
		})
		if err != nil {
			t.Fatal(err)
		}
		key.Restriction = r
	}
	stored, err := key.StoredScopes()
	if err != nil {
		t.Fatal(err)
	}
	key.SetStoredScopes(stored)
	return key.Access()
}

// drawKey draws a key of each kind, of several at once, and of none.
func drawKey(t *rapid.T) (k olaptest.Key) {
	some := func(label string, from ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 2, rapid.ID).Draw(t, label)
	}
	kind := rapid.IntRange(0, 7).Draw(t, "kind of key")
	if kind == 1 || kind == 4 || kind == 5 {
		k.Agents = some("agents of key", olaptest.ID(0).String(), olaptest.ID(1).String(), olaptest.ID(2).String(),
			olaptest.ID(99).String())
	}
	if kind == 2 || kind == 4 {
		k.People = some("people of key", "ada@example.com", "bob@example.org", "+15550100", "é@example.com",
			"o'brien\\@example.com", "nobody@example.com")
	}
	if kind == 3 || kind == 5 {
		k.Domains = some("domains of key", "example.com", "example.org", "example.net")
	}
	if kind >= 5 {
		k.MinPeople = rapid.IntRange(schema.MinMinPeople, 3).Draw(t, "least people")
	}
	return k
}

// permitted is a question without what a key with a floor is refused: people, in dimensions and filters.
func permitted(k olaptest.Key, q olaptest.Query) olaptest.Query {
	const person = "user_identifier"
	if k.MinPeople > 0 {
		q.Dimensions = slices.DeleteFunc(slices.Clone(q.Dimensions), func(d string) bool { return d == person })
		q.Filters = slices.DeleteFunc(slices.Clone(q.Filters), func(f olaptest.Filter) bool { return f.Member == person })
		q.Order = slices.DeleteFunc(slices.Clone(q.Order), func(o olaptest.Term) bool {
			return o.Member == person || len(q.Dimensions) == 0
		})
	}
	return q
}

func expected(k olaptest.Key, records olaptest.Records, organization string, q olaptest.Query) [][]any {
	want := k.Evaluate(records, organization, q)
	for _, term := range q.Order {
		if slices.Contains(q.Metrics, term.Member) && len(want) > q.Limit {
			return want[:q.Limit]
		}
	}
	return want
}

// A key that sees less is answered as if the other rows did not exist: by every option, from the rollup, the delta and
// base rows, on every page, from the cache, and while other keys of the organization ask the same at the same time.
func TestNarrowedAnswersEqualTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	var engines []*olap.Engine
	for _, options := range everyOption() {
		for _, bytes := range []int{0, 1 << 20} {
			e := engineWith(store.Conn(), options)
			if bytes > 0 {
				e.CacheAnswers(bytes)
			}
			engines = append(engines, e)
		}
	}
	refresher := rollup.New(store.Conn(), quiet, 0)
	checkProperty(t, 8, func(t *rapid.T) {
		organization, records := drawn(t)
		for _, batch := range records.Batches(t) {
			olaptest.Load(t, store.Conn(), batch)
			if rapid.IntRange(0, 2).Draw(t, "refresh") == 0 {
				refreshed(t, refresher)
			}
		}
		for range 2 {
			askSideBySide(t, rapid.SampledFrom(engines).Draw(t, "engine"), records, organization)
		}
	})
}

// askSideBySide has several keys ask one question, all at once and three times: the answers of the second and third
// round may be cached.
func askSideBySide(t *rapid.T, engine *olap.Engine, records olaptest.Records, organization string) {
	q := olaptest.DrawQuery(t)
	keys := []olaptest.Key{drawKey(t), drawKey(t), drawKey(t)}
	if rapid.Bool().Draw(t, "keys agree") {
		q = permitted(olaptest.Key{MinPeople: 2}, q)
	}
	for range 3 {
		var wait sync.WaitGroup
		failures := make([]string, len(keys))
		for i, k := range keys {
			access, q := accessOf(t, organization, k), permitted(k, q)
			wait.Go(func() {
				got, err := allAs(engine, access, q)
				want := expected(k, records, organization, q)
				if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
					failures[i] = fmt.Sprintf("key %+v, query %s\n got %v, %v\nwant %v", k, q.Body(), got, err, want)
				}
			})
		}
		wait.Wait()
		for _, failure := range failures {
			if failure != "" {
				t.Fatal(failure)
			}
		}
	}
}

// refusal is the code and the place of an error; "answered" where there is none.
func refusal(err error) string {
	var refused *query.Error
	switch {
	case err == nil:
		return "answered"
	case errors.As(err, &refused):
		return string(refused.Code) + " " + refused.Param
	}
	return err.Error()
}
