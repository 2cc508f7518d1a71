package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

func file(lines []string) *source.File {
	return &source.File{Name: "test", Format: source.NDJSON, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
	}}
}

func store(t *testing.T, conn driver.Conn, lines []string) {
	t.Helper()
	_, err := ingest.Run(context.Background(), ingest.Options{
		Sources: []*source.File{file(lines)}, Conn: conn, Logger: slog.New(slog.DiscardHandler),
		OnReject: func(r ingest.Reject) error { return fmt.Errorf("%s: %s", r.Field, r.Error) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, conn driver.Conn, lines []string, change func(*Options)) Report {
	t.Helper()
	options := Options{Source: Files{file(lines)}, Conn: conn, MaxIDs: 3}
	if change != nil {
		change(&options)
	}
	report, err := Compare(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// texts are what breaks a careless encoding.
var texts = []string{"", "-", "|", "1:a|", "Ada", "Zoë 😀", "a\nb\tc", `\N`, `o'brien\`, "\u0000", "NULL"}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// orNull is a text as JSON, or now and then null.
func orNull(r *rand.Rand, from []string) any {
	if r.IntN(4) == 0 {
		return nil
	}
	return pick(r, from)
}

func line(fields map[string]any) string {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func instant(r *rand.Rand) string {
	// From before 1970 to the last years that can be stored, so that no type of a date overflows unseen.
	ms := time.Date(1901+r.IntN(360), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() + r.Int64N(10*millisPerDay)
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// draw makes n records of every kind, in up to three versions with repeats, in any order.
func draw(r *rand.Rand, organization string, n int) (lines []string) {
	id := func(i int) string { return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i)).String() }
	for i := range n {
		created, occurred := instant(r), instant(r)
		lines = append(lines, line(map[string]any{
			"record": "attribution", "organization_id": organization, "attribution_id": id(i), "run_id": id(r.IntN(n)), "agent_id": id(r.IntN(9)),
			"user_identifier": pick(
				r, []string{" Ada@Example.com ", "+15550100", "é@example.com"},
			), "user_name": orNull(r, texts), "activity_type": pick(r, []string{"initiated", "associated", "interacted"}),
			"run_initiation_type": pick(r,
				[]string{"human", "automated", "unknown"}), "source": pick(r, []string{"web", "é", "|"}), "occurred_at": occurred,
		}))
		for version := range 1 + r.IntN(3) {
			lines = append(lines, line(map[string]any{
				"record": "run", "organization_id": organization, "run_id": id(i), "agent_id": id(r.IntN(9)), "kind": pick(r, []string{"agent", "sub_agent", "platform"}),
				"parent_run_id": orNull(
					r, []string{id(r.IntN(n))},
				), "status": pick(r, []string{"RUNNING", "COMPLETED", "CANCELLED"}), "initiator_identifier": orNull(r, texts),
				"initiator_name": orNull(
					r, texts,
				), "initiator_type": orNull(r, []string{"internal", "unknown"}), "created_at": created, "updated_at": fmt.Sprintf("19%02d-01-01T00:00:00.123Z", 10+30*version),
			}), line(map[string]any{
				"record": "agent", "organization_id": organization, "agent_id": id(i), "name": pick(r, texts), "slug": orNull(r, texts[1:]),
				"deleted_at": orNull(r,
					[]string{instant(r)}), "updated_at": fmt.Sprintf("20%02d-01-01T00:00:00.123Z", 10+30*version),
			}))
		}
	}
	lines = append(lines, lines[:len(lines)/5]...)
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

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
	whole, err := sumUp(context.Background(), Files{file(lines)}, "", maxHeld, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	shares, err := sumUp(context.Background(), Files{file(lines)}, "", 50, func(int64) {})
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
	if got := show(compare(t, conn, given, func(o *Options) { o.Organization = "globex" })); got != "globex 2026-01-09 missing "+id(
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
			changed := map[string]any{}
			for k, v := range r {
				changed[k] = v
			}
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
