package main

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A purge or a rebuild that waits says so, ever more rarely, until it ends.
func TestWhatWaitsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Buffer
		stop := remind(slog.New(slog.NewTextHandler(&log, nil)), "the purge")
		for _, c := range []struct {
			wait  time.Duration
			lines int
		}{{remindAfter - 1, 0}, {2, 1}, {remindAfter, 2}, {remindAfter, 2}, {remindAfter, 3}} {
			time.Sleep(c.wait)
			synctest.Wait()
			if got := strings.Count(log.String(), "the purge goes on"); got != c.lines {
				t.Errorf("%v later there are %d lines, want %d", c.wait, got, c.lines)
			}
		}
		stop()
		synctest.Wait()
		time.Sleep(time.Hour)
		if got := strings.Count(log.String(), "\n"); got != 3 {
			t.Errorf("%d lines after the end", got)
		}
	})
}
