package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A summary that can't be written hides no other failure, and a key that can't be shown can be revoked.
func TestLostOutputIsNotAllThatIsSaid(t *testing.T) {
	flags := store(t)
	rejected := fileOf(t, "records.ndjson", []byte("{}\n"))
	for _, c := range []struct{ args, says []string }{
		{[]string{"ingest", "--dry-run", "--rejects", "/dev/full", rejected}, []string{"the rejects", "write summary"}},
		{append([]string{"keys", "create", "--org", "acme"}, flags...), []string{"the key ", "revoke it"}},
		{append([]string{"keys", "create", "--org", "acme", "--output", "json"}, flags...),
			[]string{"the key ", "revoke it"}},
	} {
		var stderr logtest.Buffer
		code := run(context.Background(), c.args, streams{strings.NewReader(""), lostSummary{}, &stderr})
		for _, says := range c.says {
			if code != exitFailed || !strings.Contains(stderr.String(), says) {
				t.Errorf("%q: %d, does not say %q: %s", c.args, code, says, stderr.String())
			}
		}
	}
}

type lostSummary struct{}

func (lostSummary) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "summary", Err: syscall.ENOSPC}
}

// A console whose address nobody has seen serves nobody, and ends.
func TestLostConsole(t *testing.T) {
	asker(t)
	var stderr logtest.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lost := streams{strings.NewReader(""), lostSummary{}, &stderr}
	code := run(ctx, []string{"console", "--listen", "127.0.0.1:0"}, lost)
	if code != exitFailed || ctx.Err() != nil || !strings.Contains(stderr.String(), "write summary") {
		t.Errorf("%d, %v: %s", code, ctx.Err(), stderr.String())
	}
}

// Help that can't be written is no wrong usage, and one line says so.
func TestLostHelp(t *testing.T) {
	const want = "runlens: the output is not whole: write summary: no space left on device\n"
	for _, args := range [][]string{{}, {"--help"}, {"query", "--help"}} {
		var stderr logtest.Buffer
		code := run(context.Background(), args, streams{strings.NewReader(""), lostSummary{}, &stderr})
		if code != exitFailed || stderr.String() != want {
			t.Errorf("%q: %d, %q, want %d, %q", args, code, stderr.String(), exitFailed, want)
		}
	}
}
