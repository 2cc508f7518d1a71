package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/olaptest"
)

// An action has an entry from before it begins, and one that records its end, however it ends.
func TestActionsAreRecorded(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	ctx, cancel := context.WithCancel(context.Background())
	list := func() (lines []string) {
		t.Helper()
		entries, err := audit.List(context.Background(), conn, "acme")
		if err != nil {
			t.Fatal(err)
		}
		host, _ := os.Hostname()
		for _, e := range entries {
			if e.At.IsZero() || !strings.HasSuffix(e.Actor, "@"+host) {
				t.Errorf("%+v", e)
			}
			lines = append(lines, fmt.Sprint(e.Outcome, " ", e.Action, " ", e.KeyID, " ", e.Details))
		}
		return lines
	}
	action := audit.Action{Name: "keys create", OrganizationID: "acme", KeyID: "k", Details: map[string]any{"networks": 2}}
	if err := audit.Do(ctx, conn, action, func(context.Context) error {
		if got := list(); len(got) != 1 || got[0] != `begun keys create k {"networks":2}` {
			t.Errorf("while it runs: %q", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := audit.Do(ctx, conn, audit.Action{Name: "purge", OrganizationID: "acme"}, func(context.Context) error {
		cancel()
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := audit.Do(context.Background(), conn, audit.Action{Name: "purge", OrganizationID: "globex"},
		func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{`begun keys create k {"networks":2}`, `done keys create k {"networks":2}`, "begun purge  {}",
		"failed purge  {}"}
	if got := list(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	if all, err := audit.List(context.Background(), conn, ""); err != nil || len(all) != 6 {
		t.Errorf("%d entries in all, %v", len(all), err)
	}
	// What cannot be recorded does not begin.
	if err := audit.Do(ctx, conn, action, func(context.Context) error {
		t.Error("it ran all the same")
		return nil
	}); err == nil {
		t.Error("no error")
	}
}
