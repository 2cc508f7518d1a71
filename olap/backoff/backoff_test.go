package backoff_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/olap/backoff"
)

// Pauses double up to the longest one. Lines come at once, then ever more rarely, and one says when it is over. The
// next trouble begins as the first one did.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := backoff.Failures{Logger: slog.New(slog.NewJSONHandler(&log, nil)), First: time.Second, Longest: 30 * time.Second}
		f.Succeeded(t.Context(), "it works again")
		var pauses []time.Duration
		for began := time.Now(); time.Since(began) < 5*time.Hour; {
			pause := f.Failed(t.Context(), slog.LevelWarn, "it failed", "task", "x")
			pauses = append(pauses, pause)
			time.Sleep(pause)
		}
		const s = time.Second
		if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}; !slices.Equal(pauses[:7], want) {
			t.Errorf("pauses of %v, want %v", pauses[:7], want)
		}
		f.Succeeded(t.Context(), "it works again", "task", "x")
		f.Succeeded(t.Context(), "it works again", "task", "x")
		if pause := f.Failed(t.Context(), slog.LevelWarn, "it failed", "task", "x"); pause != s {
			t.Errorf("a pause of %v after the first failure", pause)
		}
		var got []string
		var began time.Time
		for line := range bytes.Lines(log.Bytes()) {
			var read struct {
				Time             time.Time
				Level, Msg, Task string
				Failures         int
			}
			if err := json.Unmarshal(line, &read); err != nil || read.Task != "x" || read.Failures == 0 {
				t.Fatal(string(line), err)
			}
			if began.IsZero() {
				began = read.Time
			}
			got = append(got, read.Level+" "+read.Msg+" "+read.Time.Sub(began).Round(time.Minute).String())
		}
		want := []string{"WARN it failed 0s", "WARN it failed 1m0s", "WARN it failed 3m0s", "WARN it failed 6m0s",
			"WARN it failed 12m0s", "WARN it failed 24m0s", "WARN it failed 48m0s", "WARN it failed 1h36m0s",
			"WARN it failed 2h36m0s", "WARN it failed 3h36m0s", "WARN it failed 4h36m0s", "INFO it works again 5h0m0s",
			"WARN it failed 5h0m0s"}
		if !slices.Equal(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	})
}
