package olap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
)

// Spec 4.2 rule 4 and contract 4.17: a cursor continues the body it came from, in whatever spelling, for its
// organization, and nothing else.
func TestCursorsBelongToTheirRequest(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	records := olaptest.Records{Runs: []olaptest.Run{runOn(1, 1, "FAILED"), runOn(2, 2, "FAILED"), runOn(3, 3, "FAILED")}}
	other := records.Runs[0]
	other.Organization = "globex"
	records.Runs = append(records.Runs, other)
	olaptest.Load(t, store.Conn(), records)

	const body = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,` +
		`"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`
	first, err := run(engine, "acme", []byte(body))
	if err != nil || first.Cursor == nil {
		t.Fatal(first, err)
	}
	with := func(body, cursor string) string { return strings.TrimSuffix(body, "}") + `,"cursor":"` + cursor + `"}` }
	cursor := *first.Cursor

	respelled := `{"limit": 1, "range":{"timezone":"UTC","start":"2026-01-01","end":"2026-01-31"}, "order":[], ` +
		`"dimensions":["day"],"metrics":["run_count"],"model":"agent_runs"}`
	for _, same := range []string{body, respelled} {
		second, err := run(engine, "acme", []byte(with(same, cursor)))
		if err != nil || len(second.Rows) != 1 || second.Rows[0][0] != "2026-01-02" {
			t.Errorf("%s: %v, %v", same, second.Rows, err)
		}
	}
	// Repeating a page is allowed: a client may have lost the answer.
	if again, err := run(engine, "acme", []byte(with(body, cursor))); err != nil || len(again.Rows) != 1 {
		t.Errorf("again: %v, %v", again.Rows, err)
	}

	for name, c := range map[string]struct{ organization, body string }{
		"another organization": {"globex", with(body, cursor)},
		"another limit":        {"acme", with(strings.Replace(body, `"limit":1`, `"limit":2`, 1), cursor)},
		"another range":        {"acme", with(strings.Replace(body, "2026-01-31", "2026-01-30", 1), cursor)},
		"another order": {"acme",
			with(strings.Replace(body, `"limit":1`, `"limit":1,"order":[{"member":"day","direction":"desc"}]`, 1), cursor)},
		"a filter more": {"acme",
			with(strings.Replace(body, `"limit":1`, `"limit":1,"filters":[{"member":"user_type","op":"eq","value":"internal"}]`,
				1), cursor)},
		"cut off":          {"acme", with(body, cursor[:len(cursor)-1])},
		"longer":           {"acme", with(body, cursor+"A")},
		"another alphabet": {"acme", with(body, cursor+"=")},
		"invented":         {"acme", with(body, "invented")},
	} {
		_, err := run(engine, c.organization, []byte(c.body))
		var refused *query.Error
		if !errors.As(err, &refused) || refused.Code != query.InvalidCursor || refused.Param != "cursor" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Another secret is another deployment; the format's version is in the signature (package cursor).
	if _, err := run(olap.NewEngine(store.Conn(), []byte("other")), "acme", []byte(with(body, cursor))); err == nil {
		t.Error("a cursor of another secret was accepted")
	}
}

// Contract 4.3: a cursor exactly when a further row exists.
func TestCursorExactlyWhenThereIsMore(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{runOn(1, 1, "FAILED"), runOn(2, 2, "FAILED")}})
	for limit, want := range map[int]bool{1: true, 2: false, 3: false} {
		q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Range: january,
			Limit: limit}
		if got := ask(t, engine, "acme", q); (got.Cursor != nil) != want {
			t.Errorf("limit %d of 2 rows: cursor %v", limit, got.Cursor)
		}
		// Spec 4.2 rule 5: ordered by a metric there is one page.
		q.Order = []olaptest.Term{{Member: "run_count", Direction: "asc"}}
		if got := ask(t, engine, "acme", q); got.Cursor != nil || len(got.Rows) != min(limit, 2) {
			t.Errorf("top %d: %d rows, cursor %v", limit, len(got.Rows), got.Cursor)
		}
	}
	// Rule 2: a totals query has one row and no cursor.
	q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january, Limit: 1}
	if got := ask(t, engine, "acme", q); got.Cursor != nil || len(got.Rows) != 1 {
		t.Errorf("totals: %v, cursor %v", got.Rows, got.Cursor)
	}
}
