package clickhouse_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// The log has the cause of a backup that failed, not the end of the stack trace that follows it.
func TestTheLogSaysWhyABackupFailed(t *testing.T) {
	var log logtest.Buffer
	c := config(dataDir(t))
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, c)
	err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "backup"), func(destination string) string {
		return "BACKUP TABLE runlens.nothing TO " + destination
	})
	if err == nil || !strings.Contains(err.Error(), "the log says why") ||
		!strings.Contains(log.String(), "UNKNOWN_TABLE") {
		t.Errorf("%v; the log says %s", err, log.String())
	}
}
