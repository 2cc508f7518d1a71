package verify

import (
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
)

func file(lines []string) *source.File {
	return &source.File{Name: "test", Format: source.NDJSON, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
	}}
}

func store(t *testing.T, conn driver.Conn, lines []string) {
	t.Helper()
	_, err := ingest.Run(context.Background(), ingest.Options{
		Sources: []*source.File{file(lines)}, Logger: slog.New(slog.DiscardHandler),
		Writer:   ingest.NewWriter(conn, slog.New(slog.DiscardHandler)),
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
			"record": "attribution", "organization_id": organization, "attribution_id": id(i), "run_id": id(r.IntN(n)),
			"agent_id": id(r.IntN(9)),
			"user_identifier": pick(
				r, []string{" Ada@Example.com ", "+15550100", "é@example.com"},
			), "user_name": orNull(r, texts), "activity_type": pick(r, []string{"initiated", "associated", "interacted"}),
			"run_initiation_type": pick(r,
				[]string{"human", "automated", "unknown"}), "source": pick(r, []string{"web", "é", "|"}), "occurred_at": occurred,
		}))
		for version := range 1 + r.IntN(3) {
			lines = append(lines, line(map[string]any{
				"record": "run", "organization_id": organization, "run_id": id(i), "agent_id": id(r.IntN(9)),
				"kind": pick(r, []string{"agent", "sub_agent", "platform"}),
				"parent_run_id": orNull(
					r, []string{id(r.IntN(n))},
				), "status": pick(r, []string{"RUNNING", "COMPLETED", "CANCELLED"}), "initiator_identifier": orNull(r, texts),
				"initiator_name": orNull(
					r, texts,
				), "initiator_type": orNull(r, []string{"internal", "unknown"}), "created_at": created,
				"updated_at": fmt.Sprintf("19%02d-01-01T00:00:00.123Z", 10+30*version),
			}), line(map[string]any{
				"record": "agent", "organization_id": organization, "agent_id": id(i), "name": pick(r, texts),
				"slug": orNull(r, texts[1:]),
				"deleted_at": orNull(r,
					[]string{instant(r)}), "updated_at": fmt.Sprintf("20%02d-01-01T00:00:00.123Z", 10+30*version),
			}))
		}
	}
	lines = append(lines, lines[:len(lines)/5]...)
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}
