package worker_test

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
)

// A row without a usable time is rejected alone, with its id, and once; all others are copied, before and after.
func TestRowsWithoutATime(t *testing.T) {
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.do(`ALTER TABLE runs ALTER updated_at DROP NOT NULL, ALTER created_at DROP NOT NULL;
		ALTER TABLE attributions ALTER updated_at DROP NOT NULL;
		UPDATE runs SET updated_at = 'infinity' WHERE run_id = lpad('1', 32, '0')::uuid;
		UPDATE runs SET updated_at = '-infinity' WHERE run_id = lpad('2', 32, '0')::uuid;
		UPDATE runs SET updated_at = NULL WHERE run_id = lpad('3', 32, '0')::uuid;
		UPDATE runs SET created_at = 'infinity' WHERE run_id = lpad('4', 32, '0')::uuid;
		UPDATE runs SET created_at = NULL WHERE run_id = lpad('5', 32, '0')::uuid;
		UPDATE runs SET created_at = '20000-01-01' WHERE run_id = lpad('6', 32, '0')::uuid;
		UPDATE runs SET updated_at = '0044-03-15 BC' WHERE run_id = lpad('7', 32, '0')::uuid;
		UPDATE agents SET deleted_at = 'infinity' WHERE agent_id = lpad('8', 32, '0')::uuid;
		UPDATE attributions SET occurred_at = '-infinity' WHERE attribution_id = lpad('9', 32, '0')::uuid;
		UPDATE attributions SET updated_at = NULL WHERE attribution_id = lpad('a', 32, '0')::uuid;
		UPDATE attributions SET updated_at = 'infinity' WHERE attribution_id = lpad('b', 32, '0')::uuid`)
	status, stop := b.start(nil)
	b.untilEqual()
	b.insert("acme", 31, 10)
	b.untilEqual()
	// One without a time may come later, too.
	b.do(`UPDATE runs SET updated_at = NULL WHERE run_id = lpad('c', 32, '0')::uuid`)
	b.until("the row is rejected", func() bool { return status.Report().Kinds[normalize.KindRun].Rejected == 8 })
	stop()
	want := map[string]string{
		"000000000001": "updated_at", "000000000002": "updated_at", "000000000003": "updated_at",
		"000000000004": "created_at", "000000000005": "created_at",
		"000000000006": "created_at", "000000000007": "updated_at", "000000000008": "deleted_at",
		"000000000009": "occurred_at", "00000000000c": "updated_at",
	}
	for _, r := range b.rejected {
		id := ""
		for i := range want {
			if strings.Contains(string(r.Record), `_id":"00000000-0000-0000-0000-`+i+`"`) && want[i] == r.Field {
				id = i
			}
		}
		if id == "" {
			t.Errorf("rejected: %s %s %s", r.Field, r.Error, r.Record)
		}
		delete(want, id)
	}
	if len(want) != 0 {
		t.Errorf("not rejected: %v", want)
	}
	// What a run or an agent was before stays stored; of attributions updated_at is no field.
	for table, n := range map[string]uint64{"agents": 39, "runs": 33, "attributions": 39} {
		if got := b.count("SELECT count() FROM " + table + " FINAL"); got != n {
			t.Errorf("%d %s, want %d", got, table, n)
		}
	}
}
