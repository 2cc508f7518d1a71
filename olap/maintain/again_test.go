package maintain

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// kinds is a script whose steps are of kinds.
type kinds struct {
	script
	did []string
}

func (k *kinds) Did() string { return append(k.did, "")[min(len(k.begins)-1, len(k.did))] }

// What works again is what had failed: a step that had nothing to do, or did something else, says nothing of it.
func TestWhatWorksAgain(t *testing.T) {
	no := takes(0, true, errors.New("not allowed"))
	yes := takes(0, true, nil)
	for name, c := range map[string]struct {
		steps []step
		did   []string
		want  []string
	}{
		"nothing to do in between": {[]step{no, yes, no, yes, no, yes, no}, []string{"write", "", "write", "", "write", "",
			"write"}, []string{"failed"}},
		"at last": {[]step{no, yes, no, yes}, []string{"write", "", "write", "write"}, []string{"failed", "works"}},
		"something else": {[]step{no, yes, no, no, yes, yes, yes}, []string{"write", "read", "write", "read", "read", "",
			"write"}, []string{"failed", "works"}},
		"too early to know": {[]step{no, yes}, []string{"", ""}, []string{"failed", "works"}},
		"not even that":     {[]step{no, no, yes, yes}, []string{"write", "", "", "write"}, []string{"failed", "works"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var log bytes.Buffer
				task := &kinds{script{steps: c.steps, done: cancel}, c.did}
				New("script", task, slog.New(slog.NewTextHandler(&log, nil)), 0.2, time.Second, answers).Run(ctx)
				var got []string
				for line := range strings.Lines(log.String()) {
					_, message, _ := strings.Cut(line, `msg="maintenance `)
					got = append(got, message[:strings.IndexAny(message, ", ")])
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("the log says %v, want %v:\n%s", got, c.want, &log)
				}
			})
		})
	}
}
