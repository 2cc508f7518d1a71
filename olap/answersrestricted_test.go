package olap_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// A key that sees less than its organization is not told by asOf whether anything that it does not see was stored: a
// first page that is asked again is as of then, whether others follow it or not.
func TestAsOfDoesNotTellWhatAKeyMayNotSee(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	execute(t, conn, "INSERT INTO runs (organization_id, run_id, created_at, agent_id, status, "+
		"initiator_identifier, updated_at) SELECT 'acme', generateUUIDv4(number), toDateTime64('2026-01-01', 3) + number * "+
		"86400, generateUUIDv4(), 'COMPLETED', 'ada@x.example', now64(3) FROM numbers(10)")
	e := cachingEngine(conn)
	restriction, err := schema.NewRestriction(schema.Restriction{Domains: []string{"x.example"}})
	if err != nil {
		t.Fatal(err)
	}
	key := schema.APIKey{OrganizationID: "acme", KeyLimits: schema.KeyLimits{Restriction: restriction}}
	for pages, limit := range map[string]string{"several": "2", "one": "100"} {
		q := []byte(`{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"limit":` + limit + `,` + january31)
		last := ""
		for n := range 6 {
			got, _, err := answered(e, key.Access(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got.AsOf == last {
				t.Errorf("%s pages: answer %d has the asOf of the one before", pages, n)
			}
			last = got.AsOf
			time.Sleep(60 * time.Millisecond) // longer than first pages share one
		}
	}
}
