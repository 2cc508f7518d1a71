package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/schema"
)

// An ingest that was interrupted, and whose organization was purged since, begins again: what it had stored is gone. So
// it does where a purge was lifted, since records belong to the store that were left out; but not after the purge of a
// person, whose records would be left out again.
func TestAnIngestBeginsAgainAfterAPurge(t *testing.T) {
	flags, quiet := store(t), slog.New(slog.DiscardHandler)
	// One file is stored, and the run of both was interrupted then.
	files := []string{fileOf(t, "agents.ndjson", []byte(agentsNDJSON)),
		fileOf(t, "more.ndjson", []byte(strings.ReplaceAll(agentsNDJSON, "00a", "00b")))}
	succeeds := func(args ...string) (said string) {
		t.Helper()
		code, out, stderr := command(t, "", append(args, flags...)...)
		if code != exitDone {
			t.Fatalf("%v ended with %d: %s%s", args, code, out, stderr)
		}
		return stderr
	}
	interrupt := func() {
		t.Helper()
		in, err := formatFlags{Delimiter: ",", Null: `\N`}.open(files, streams{})
		must(t, err)
		opened, err := openMigrated(t.Context(), storeFlags{DataDir: flags[1], EngineLib: flags[3]}, quiet)
		must(t, err)
		defer opened.Close()
		backfill := ingest.NewBackfill(checkpoint.NewLog(opened.Conn(), write.Retry{Logger: quiet}), in.fingerprints)
		if _, _, _, err := backfill.Interrupted(t.Context()); err != nil { // what is saved next counts more
			t.Fatal(err)
		}
		progress := ingest.Progress{Source: 1, Summary: ingest.Summary{Read: 1, Agents: 1}}
		must(t, backfill.Save(t.Context(), progress))
	}
	for _, c := range []struct {
		purges [][]string
		says   string
	}{
		{nil, "continuing an interrupted ingest"},
		{[][]string{{"--person", "ada@example.com", "--yes"}}, "continuing an interrupted ingest"},
		{[][]string{{"--person", "ada@example.com", "--lift"}}, "beginning an interrupted ingest again"},
		{[][]string{{"--yes"}}, "beginning an interrupted ingest again"},
	} {
		succeeds("ingest", files[0])
		interrupt()
		for _, purge := range c.purges {
			succeeds(append([]string{"purge", "--org", "acme"}, purge...)...)
		}
		if said := succeeds("ingest", files[0], files[1]); !strings.Contains(said, c.says) {
			t.Errorf("after %v it says %q, want %q", c.purges, said, c.says)
		}
		verified(t, flags, files...)
	}
}

// While a purge has begun and not ended, as one that was killed or failed, an ingest begins again whenever it was
// interrupted; not once the organization was purged by another.
func TestAPurgeThatDidNotEndOutdates(t *testing.T) {
	entry := func(action byte, outcome, organization, of string) audit.Entry {
		return audit.Entry{ActionID: uuid.UUID{action}, Action: actionPurge, Outcome: outcome,
			OrganizationID: schema.OrganizationID(organization), Details: `{"of":"` + of + `"}`}
	}
	acme := entry(1, audit.Begun, "acme", "organization")
	for name, c := range map[string]struct {
		entries []audit.Entry
		unended bool
	}{
		"none":     {nil, false},
		"ended":    {[]audit.Entry{acme, entry(1, audit.Done, "acme", "organization")}, false},
		"killed":   {[]audit.Entry{acme}, true},
		"failed":   {[]audit.Entry{acme, entry(1, audit.Failed, "acme", "organization")}, true},
		"others":   {[]audit.Entry{acme, entry(2, audit.Done, "globex", "organization")}, true},
		"repeated": {[]audit.Entry{acme, entry(2, audit.Done, "acme", "organization")}, false},
		"person":   {[]audit.Entry{entry(1, audit.Begun, "acme", ofPerson)}, false},
	} {
		if _, unended := newestOf(c.entries); unended != c.unended {
			t.Errorf("%s: %t", name, unended)
		}
	}
}

// So does a database that init copies: all of it is there afterwards.
func TestInitCopiesAgainAfterAPurge(t *testing.T) {
	flags, config := store(t), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	url, _ := operational(t, 20)
	for _, says := range []string{"", "copying from the beginning"} {
		code, out, stderr := command(t, "", append([]string{"init", "--source", url, "--org", "acme",
			"--mapping", filepath.Join(config, "mapping.sql")}, flags...)...)
		if code != exitDone || !strings.Contains(out, "acme has 20 runs") || !strings.Contains(stderr, says) {
			t.Errorf("ended with %d: %s%s", code, out, stderr)
		}
		code, _, stderr = command(t, "", append([]string{"purge", "--org", "acme", "--yes"}, flags...)...)
		if code != exitDone {
			t.Errorf("the purge ended with %d: %s", code, stderr)
		}
	}
}
