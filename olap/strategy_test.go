package olap_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Every result says how it was computed, and ClickHouse's log_comment says it in the same words.
func TestStrategies(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	refresher := rollup.New(conn, quiet, 0)
	refreshed(t, refresher)
	newEngine := func() *olap.Engine {
		e := newEngine(conn)
		return e
	}
	small, large, forgetful := newEngine(), newEngine(), newEngine()
	large.Use(asLarge)
	forgetful.Use(inlineDelta)
	cursor := ""
	for _, step := range []struct {
		engine  *olap.Engine
		store   bool // one run before
		refresh bool
		query   string
		want    olap.Strategy
	}{
		{small, true, false, runs, olap.Strategy{Reads: "base", Page: "single", Reason: "rows_below_threshold", Attempt: 1}},
		{large, false, false, activity, olap.Strategy{Reads: "base", Page: "single", Reason: "member_not_in_rollup",
			Attempt: 1}},
		{large, false, false, runs, olap.Strategy{Reads: "rollup_aggregates", Delta: "cached", Page: "single", Attempt: 1}},
		{forgetful, false, false, runs, olap.Strategy{Reads: "rollup_aggregates", Delta: "inline", Page: "single",
			Attempt: 1}},
		{large, true, true, runs, olap.Strategy{Reads: "rollup_aggregates", Delta: "none", Page: "single", Attempt: 1}},
		{large, false, false, initiators, olap.Strategy{Reads: "rollup_rows", Delta: "none", Page: "single",
			Reason: "range_off_spans", Attempt: 1}},
		{small, false, false, days, olap.Strategy{Reads: "base", Page: "first", Reason: "rows_below_threshold", Attempt: 1}},
		{small, false, false, days, olap.Strategy{Reads: "base", Page: "next", Reason: "rows_below_threshold", Attempt: 1}},
	} {
		if step.store {
			for n := range 2 {
				olaptest.Load(t, conn, olaptest.Records{Runs: []olaptest.Run{runOn(n, 1+n, "RUNNING")}})
			}
		}
		if step.refresh {
			refreshed(t, refresher)
		}
		body := step.query
		if step.want.Page == "next" {
			body = strings.TrimSuffix(body, "}") + `,"cursor":"` + cursor + `"}`
		}
		var got olap.Strategy
		for range 100 {
			page, by, err := answered(step.engine, acme, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if page.Cursor != nil {
				cursor = *page.Cursor
			}
			// Until the inserts are old enough to be counted, the delta is not cached.
			if got = by; reflect.DeepEqual(got, step.want) {
				break
			}
		}
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: %+v, want %+v", body, got, step.want)
		}
		comment := olap.Comment(olap.Request{RequestID: "r", Access: acme, KeyID: "k"}, got)
		words, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"request_id":"r","organization_id":"acme","key_id":"k","strategy":` + string(words) +
			`}`; comment != want {
			t.Errorf("the comment is %s, want %s", comment, want)
		}
	}
}

const (
	january31  = `"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`
	runs       = `{"model":"agent_runs","metrics":["run_count"],` + january31
	days       = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":1,` + january31
	initiators = `{"model":"agent_runs","metrics":["unique_initiator_count"],` + january31
	activity   = `{"model":"agent_user_activity","metrics":["completed_attributed_run_count"],` + january31
)
