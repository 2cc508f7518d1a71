package worker_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// What is stored of an organization of which the source has nothing is kept, and the log says why: not that
// DeleteMissing is not set.
func TestWhyAnOrganizationIsKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	b.insert("globex", 1, 10)
	b.copied()
	for _, table := range []string{"agents", "runs", "attributions"} {
		b.do("DELETE FROM " + table + " WHERE organization_id = 'globex'")
	}
	for deletes, says := range map[bool]string{false: "(--delete-missing)", true: "it has nothing of their organization"} {
		log := &logtest.Buffer{}
		found := b.reconcile(func(o *worker.Options) {
			o.DeleteMissing, o.DeleteMissingShare = deletes, 1
			o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		if found.Missing != 30 || found.Deleted != 0 || found.Refused != 0 {
			t.Errorf("%+v", found)
		}
		if text := log.String(); strings.Count(text, "stay stored and are counted") != 1 || !strings.Contains(text, says) {
			t.Errorf("with DeleteMissing %t: %s", deletes, text)
		}
	}
}
