package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest"
)

// Whatever was ingested, in whatever order and however often, is found equal, and the checksum
// computed here agrees with ClickHouse's.
func TestEqual(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	r := rand.New(rand.NewPCG(1, 2))
	lines := append(draw(r, "acme", 300), draw(r, "globex", 100)...)
	store(t, conn, lines)
	report := compare(t, conn, lines, nil)
	if len(report.Differences) != 0 || report.Rows != 1200 || report.Read != int64(len(lines)) || report.Groups < 500 {
		t.Errorf("%d rows of %d records in %d groups, %.2000s", report.Rows, report.Read, report.Groups,
			fmt.Sprint(report.Differences))
	}
	// The same in shares of the ids, as for a source that does not fit into memory.
	whole, err := sumUp(context.Background(), Options{Source: Files{file(lines)}}, nil, maxHeld, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	shares, err := sumUp(context.Background(), Options{Source: Files{file(lines)}}, nil, 50, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(whole.sums) != fmt.Sprint(shares.sums) || whole.read != shares.read {
		t.Error("reading in shares gives other sums")
	}
}

// Of versions with the same time and other content any may have won (contract 4.16).
func TestSameVersionWithOtherContent(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	var lines []string
	for _, name := range []string{"A", "B", "C"} {
		lines = append(
			lines,
			line(
				map[string]any{
					"record":          "agent",
					"organization_id": "acme",
					"agent_id":        olaptest.ShortID(1),
					"name":            name,
					"updated_at":      "2026-01-01T00:00:00Z",
				},
			),
		)
	}
	store(t, conn, lines)
	if report := compare(t, conn, lines, nil); len(report.Differences) != 0 {
		t.Errorf("%+v", report)
	}
	if report := compare(t, conn, []string{strings.Replace(lines[0], `"A"`, `"D"`, 1)}, nil); len(
		report.Differences,
	) != 1 ||
		report.Differences[0].Changed.Count != 1 {
		t.Errorf("%+v", report)
	}
}

// Every way to differ is found, counted and named down to the id.
func TestDifferences(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	run := func(n int, status, updated string) string {
		return line(
			map[string]any{
				"record":          "run",
				"organization_id": "acme",
				"run_id":          olaptest.ShortID(n),
				"agent_id":        olaptest.ShortID(1),
				"status":          status,
				"created_at":      fmt.Sprintf("2026-01-%02dT23:59:59.999Z", n),
				"updated_at":      updated,
			},
		)
	}
	var stored, given []string
	for n := 1; n <= 9; n++ {
		stored = append(stored, run(n, "FAILED", "2026-02-02T00:00:00Z"))
		given = append(given, run(n, "FAILED", "2026-02-02T00:00:00Z"))
	}
	given[0] = run(1, "FAILED", "2026-02-03T00:00:00Z")    // the store is stale
	given[1] = run(2, "FAILED", "2026-02-01T00:00:00Z")    // the store is newer
	given[2] = run(3, "COMPLETED", "2026-02-02T00:00:00Z") // other content
	given = append(given[:3], given[4:]...)                // only in the store
	given = append(given, run(10, "FAILED", "2026-02-02T00:00:00Z"), "not JSON",
		strings.Replace(run(9, "FAILED", "2026-02-02T00:00:00Z"), "acme", "globex", 1))
	store(t, conn, stored)

	show := func(r Report) string {
		var out bytes.Buffer
		for _, d := range r.Differences {
			for _, w := range []struct {
				name string
				Rows
			}{{"missing", d.Missing}, {"stale", d.Stale}, {"newer", d.Newer}, {"changed", d.Changed}, {"extra", d.Extra}} {
				if w.Count > 0 {
					fmt.Fprintf(&out, "%s %s %s %v; ", d.Organization, d.Day, w.name, w.IDs)
				}
			}
		}
		return out.String()
	}
	id := func(n int) string { return fmt.Sprintf("[%s]; ", olaptest.ShortID(n)) }
	want := "acme 2026-01-01 stale " + id(
		1,
	) + "acme 2026-01-02 newer " + id(
		2,
	) + "acme 2026-01-03 changed " + id(
		3,
	) + "acme 2026-01-04 extra " + id(
		4,
	) +
		"acme 2026-01-10 missing " + id(
		10,
	) + "globex 2026-01-09 missing " + id(
		9,
	)
	report := compare(t, conn, given, nil)
	if got := show(report); got != want || report.Rejected != 1 {
		t.Errorf("got  %s\nwant %s\n%+v", got, want, report)
	}
	want = "acme 2026-01-01 stale " + id(
		1,
	) + "acme 2026-01-03 changed " + id(
		3,
	) + "acme 2026-01-10 missing " + id(
		10,
	) + "globex 2026-01-09 missing " + id(
		9,
	)
	if got := show(compare(t, conn, given, func(o *Options) { o.Subset = true })); got != want {
		t.Errorf("of a part: got %s\nwant %s", got, want)
	}
	if got := show(compare(t, conn, given,
		func(o *Options) { o.Organization = "globex" })); got != "globex 2026-01-09 missing "+id(
		9,
	) {
		t.Errorf("of one organization: got %s", got)
	}
}

// Every stored field takes part in the checksum.
func TestEveryFieldCounts(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	id := olaptest.ShortID
	records := []map[string]any{
		{
			"record":          "agent",
			"organization_id": "acme",
			"agent_id":        id(1),
			"name":            "A",
			"slug":            "a",
			"deleted_at":      "2026-01-01T00:00:00Z",
			"updated_at":      "2026-01-01T00:00:00Z",
		},
		{
			"record":               "run",
			"organization_id":      "acme",
			"run_id":               id(1),
			"agent_id":             id(1),
			"kind":                 "agent",
			"parent_run_id":        id(2),
			"status":               "FAILED",
			"initiator_identifier": "a",
			"initiator_name":       "A",
			"initiator_type":       "internal",
			"created_at":           "2026-01-01T00:00:00Z",
			"updated_at":           "2026-01-01T00:00:00Z",
		},
		{
			"record":              "attribution",
			"organization_id":     "acme",
			"attribution_id":      id(1),
			"run_id":              id(1),
			"agent_id":            id(1),
			"user_identifier":     "a@b.example",
			"user_name":           "A",
			"activity_type":       "initiated",
			"run_initiation_type": "human",
			"source":              "web",
			"occurred_at":         "2026-01-01T00:00:00Z",
		},
	}
	other := map[string]any{
		"kind":                "platform",
		"status":              "COMPLETED",
		"initiator_type":      "unknown",
		"activity_type":       "associated",
		"run_initiation_type": "automated",
		"user_identifier":     "+15550100",
	}
	var lines []string
	for _, r := range records {
		lines = append(lines, line(r))
	}
	store(t, conn, lines)
	for i, r := range records {
		for field, value := range r {
			if field == "record" {
				continue
			}
			changed := maps.Clone(r)
			switch {
			case other[field] != nil:
				changed[field] = other[field]
			case strings.HasSuffix(field, "_at"):
				changed[field] = "2026-01-01T00:00:00.001Z"
			case strings.HasSuffix(field, "_id") && field != "organization_id":
				changed[field] = id(9)
			default:
				changed[field] = value.(string) + "x"
			}
			given := append([]string(nil), lines...)
			given[i] = line(changed)
			if report := compare(t, conn, given, nil); len(report.Differences) == 0 {
				t.Errorf("another %s of a %s goes unseen", field, r["record"])
			}
		}
	}
}
