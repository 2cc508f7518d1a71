package verify

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// What a file changes that should never change counts once, before the rollup is refreshed and after it: it is named,
// and is no difference.
func TestConflictsAreNoDifference(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	id := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
	run := func(n int, created, updated, status string) string {
		return line(
			map[string]any{"record": "run", "organization_id": "acme", "run_id": id(n), "agent_id": id(9), "status": status,
				"created_at": created, "updated_at": updated},
		)
	}
	attribution := func(n int, occurred, activity string) string {
		return line(
			map[string]any{
				"record":              "attribution",
				"organization_id":     "acme",
				"attribution_id":      id(n),
				"run_id":              id(1),
				"agent_id":            id(9),
				"user_identifier":     "ada@example.com",
				"activity_type":       activity,
				"run_initiation_type": "human",
				"source":              "web",
				"occurred_at":         occurred,
			},
		)
	}
	lines := []string{
		run(1, "2026-01-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "RUNNING"), // moves by a millisecond
		run(2, "2026-01-05T10:00:00.000Z", "2026-01-08T00:00:00Z", "FAILED"),  // an older version moved
		run(3, "2026-01-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "RUNNING"), // the status decides between versions
		run(4, "2026-01-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "RUNNING"), // the later clock does
		run(5, "2026-01-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "RUNNING"), // nothing moves
		attribution(1, "2026-01-05T10:00:00.000Z", "interacted"),
		attribution(2, "2026-01-05T10:00:00.000Z", "interacted"),
	}
	// In a batch of its own, as the first one that is stored counts.
	later := []string{
		run(1, "2026-01-05T10:00:00.001Z", "2026-01-07T00:00:00Z", "FAILED"),
		run(2, "2026-03-05T10:00:00.000Z", "2026-01-07T00:00:00Z", "RUNNING"),
		run(3, "2026-03-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "PENDING"),
		run(4, "2026-03-05T10:00:00.000Z", "2026-01-06T00:00:00Z", "RUNNING"),
		attribution(1, "2026-03-05T10:00:00.000Z", "interacted"),
		attribution(2, "2026-01-05T10:00:00.000Z", "associated"),
	}
	store(t, conn, lines)
	store(t, conn, later)
	for _, when := range []string{"before a refresh", "after it"} {
		report := compare(t, conn, append(lines, later...), func(o *Options) { o.MaxIDs = 9 })
		if len(report.Differences) > 0 {
			t.Errorf("%s: %+v", when, report.Differences)
		}
		named := fmt.Sprint(report.Conflicts)
		for _, n := range []int{1, 2, 3, 4} {
			if !strings.Contains(named, id(n)) {
				t.Errorf("%s: %s is not named: %s", when, id(n), named)
			}
		}
		if strings.Contains(named, id(5)) {
			t.Errorf("%s: what did not move is named: %s", when, named)
		}
		if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
