package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/olap/olaptest"
)

var quiet = slog.New(slog.DiscardHandler)

func run(n, version int, status string) string {
	return fmt.Sprintf(
		`{"record":"run","organization_id":"acme","run_id":"%s","agent_id":"%s","status":"%s","initiator_identifier":" `+
			`Ada%d@Example.com","created_at":"20%02d-01-05T10:00:00Z","updated_at":"2026-01-05T10:00:%02dZ"}`,
		olaptest.ShortID(n), olaptest.ShortID(1), status, n, 10+n%15, version,
	)
}

func attribution(n int) string {
	return fmt.Sprintf(
		`{"record":"attribution","organization_id":"acme","attribution_id":"%s","run_id":"%s","agent_id":"%s",`+
			`"user_identifier":"+1555010%d","activity_type":"interacted","run_initiation_type":"human","source":"web",`+
			`"occurred_at":"2026-01-05T10:00:00Z"}`,
		olaptest.ShortID(n), olaptest.ShortID(n), olaptest.ShortID(1), n,
	)
}

func agent(n, version int) string {
	return fmt.Sprintf(
		`{"record":"agent","organization_id":"acme","agent_id":"%s","name":"Agent `+
			`%d","slug":"a%d","updated_at":"2026-01-05T10:00:%02dZ"}`,
		olaptest.ShortID(n), version, n, version,
	)
}

func text(name string, lines ...string) *source.File {
	return &source.File{Name: name, Format: source.NDJSON, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
	}}
}

// collect returns options that keep rejects in a slice.
func collect(conn driver.Conn, rejects *[]ingest.Reject, sources ...*source.File) ingest.Options {
	options := ingest.Options{
		Sources: sources, Logger: quiet,
		OnReject: func(r ingest.Reject) error { *rejects = append(*rejects, r); return nil },
	}
	if conn != nil {
		options.Writer = ingest.NewWriter(conn, quiet)
	}
	return options
}

func ingestAll(t olaptest.Failer, conn driver.Conn, lines ...string) {
	t.Helper()
	var rejects []ingest.Reject
	if _, err := ingest.Run(context.Background(), collect(conn, &rejects, text("test", lines...))); err != nil ||
		len(rejects) > 0 {
		t.Fatal(err, rejects)
	}
}

// Contract 3: copying is idempotent and order does not matter.
func TestOrderAndRepeatsChangeNothing(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	var lines []string
	for n := range 12 {
		lines = append(lines, run(n, 1, "RUNNING"), run(n, 2, "FAILED"), attribution(n), agent(n%3, n))
	}
	clear := func(t olaptest.Failer) {
		for _, table := range []string{"agents", "runs", "attributions"} {
			if err := conn.Exec(context.Background(), "TRUNCATE TABLE "+table); err != nil {
				t.Fatal(err)
			}
		}
	}
	ingestAll(t, conn, lines...)
	want := content(t, conn)
	if strings.Count(want, "ada") != 12 {
		t.Fatalf("the tables have\n%s", want)
	}
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		clear(t)
		shuffled := append(slices.Clone(lines), lines[:random.IntN(len(lines))]...)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for len(shuffled) > 0 {
			n := 1 + random.IntN(len(shuffled))
			ingestAll(t, conn, shuffled[:n]...)
			shuffled = shuffled[n:]
		}
		if got := content(t, conn); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// Contract 3: a row that breaks a rule is rejected alone, and nothing is dropped silently.
func TestRejects(t *testing.T) {
	store := olaptest.OpenStore(t)
	var rejects []ingest.Reject
	options := collect(store.Conn(), &rejects,
		text("a.ndjson", run(1, 1, "FAILED"), `{"record":"run"}`, "no JSON \xff", run(2, 1, "ENDED"), attribution(1)),
		text("empty"),
		text("b.ndjson", agent(1, 1), strings.Repeat("x", 2<<20)))
	summary, err := ingest.Run(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	if summary.Read != 7 || summary.Rejected != 4 || summary.Runs != 1 || summary.Attributions != 1 ||
		summary.Agents != 1 {
		t.Errorf("summary %+v", summary)
	}
	for i, want := range []struct {
		source string
		line   int
		field  string
		record string
	}{
		{"a.ndjson", 2, "organization_id", `{"record":"run"}`},
		{"a.ndjson", 3, "", `"no JSON ` + "\uFFFD" + `"`},
		{"a.ndjson", 4, "status", run(2, 1, "ENDED")},
		{"b.ndjson", 2, "", `"` + strings.Repeat("x", 4096) + `"`},
	} {
		r := rejects[i]
		if r.Source != want.source || r.Line != want.line || r.Field != want.field || string(r.Record) != want.record ||
			r.Error == "" {
			t.Errorf("reject %d: %s line %d field %q: %s: %.100s", i, r.Source, r.Line, r.Field, r.Error, r.Record)
		}
		line, err := r.AppendJSON(nil)
		var fields map[string]any
		if err != nil || json.Unmarshal(line, &fields) != nil || len(fields) != 5 || line[len(line)-1] != '\n' {
			t.Errorf("reject %d is written as %.100q, %v", i, line, err)
		}
	}
}

// --on-error stop: what came before the reject is stored, nothing after it.
func TestStopOnError(t *testing.T) {
	store := olaptest.OpenStore(t)
	var rejects []ingest.Reject
	options := collect(store.Conn(), &rejects, text("a", run(1, 1, "FAILED"), "{}", run(2, 1, "FAILED")),
		text("b", run(3, 1, "FAILED")))
	options.StopOnError = true
	summary, err := ingest.Run(context.Background(), options)
	if !errors.Is(err, ingest.ErrRejected) || !strings.Contains(err.Error(), "a line 2") {
		t.Errorf("got %v, want the place of the reject", err)
	}
	if summary.Runs != 1 || len(rejects) != 1 || !strings.Contains(content(t, store.Conn()), "ada1@") {
		t.Errorf("summary %+v, %d rejects", summary, len(rejects))
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	var rejects []ingest.Reject
	summary, err := ingest.Run(context.Background(), collect(nil, &rejects, text("a", run(1, 1, "FAILED"), "{}")))
	if err != nil || summary.Read != 2 || summary.Runs != 1 || summary.Rejected != 1 {
		t.Errorf("%+v, %v", summary, err)
	}
}

// A source that breaks in the middle: what was read is stored, and the error names the source.
func TestReadErrorStoresWhatCameBefore(t *testing.T) {
	store := olaptest.OpenStore(t)
	var rejects []ingest.Reject
	broken := &source.File{Name: "broken.ndjson", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(
			io.MultiReader(strings.NewReader(run(1, 1, "FAILED")+"\n"), iotest.ErrReader(errors.New("gone"))),
		), nil
	}}
	summary, err := ingest.Run(context.Background(), collect(store.Conn(), &rejects, broken))
	if err == nil || !strings.Contains(err.Error(), "broken.ndjson") || summary.Runs != 1 {
		t.Errorf("%+v, %v", summary, err)
	}
}

// The first interrupt writes what was read and ends; the next run continues there.
func TestStopAndContinue(t *testing.T) {
	store := olaptest.OpenStore(t)
	var lines []string
	for n := range 5000 {
		lines = append(lines, attribution(n), "{}")
	}
	var rejects []ingest.Reject
	stop := make(chan struct{})
	served := 0
	stopping := text("a", lines...)
	open := stopping.Open
	stopping.Open = func() (io.ReadCloser, error) {
		in, err := open()
		return io.NopCloser(iotest.OneByteReader(readerFunc(func(p []byte) (int, error) {
			if served++; served == 100_000 {
				close(stop)
			}
			return in.Read(p)
		}))), err
	}
	options := collect(store.Conn(), &rejects, text("before", run(1, 1, "FAILED")), stopping, text("after", agent(1, 1)))
	options.Stop = stop
	var last ingest.Progress
	options.Acknowledged = func(_ context.Context, p ingest.Progress) error { last = p; return nil }
	summary, err := ingest.Run(context.Background(), options)
	if !errors.Is(err, ingest.ErrStopped) || summary.Attributions == 0 || summary.Attributions == 5000 ||
		summary != last.Summary ||
		last.Source != 1 {
		t.Fatalf("%+v, %v, last acknowledged %+v", summary, err, last)
	}
	options.Stop, stopping.Open, options.From = nil, open, last
	summary, err = ingest.Run(context.Background(), options)
	if want := (ingest.Summary{Read: 10_002, Agents: 1, Runs: 1, Attributions: 5000, Rejected: 5000}); err != nil ||
		summary != want {
		t.Errorf("%+v, %v, want %+v", summary, err, want)
	}
	for i, reject := range rejects {
		if reject.Line != 2*(i+1) {
			t.Fatalf("reject %d is of line %d", i, reject.Line)
		}
	}
	if n := strings.Count(content(t, store.Conn()), "attribution_id"); n != 5000 || len(rejects) != 5000 {
		t.Errorf("%d attributions, %d rejects", n, len(rejects))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A failure of the store ends the run although the source never ends.
func TestStoreFailureEndsTheRun(t *testing.T) {
	store := olaptest.OpenStore(t)
	if err := store.Conn().Exec(context.Background(), "DROP TABLE attributions"); err != nil {
		t.Fatal(err)
	}
	line := attribution(1) + "\n"
	endless := &source.File{
		Name: "endless",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(&repeat{line: line}), nil },
	}
	var rejects []ingest.Reject
	summary, err := ingest.Run(context.Background(), collect(store.Conn(), &rejects, endless))
	if err == nil || summary.Read != 0 {
		t.Errorf("%+v, %v", summary, err)
	}
}

type repeat struct {
	line string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		copied := copy(p[n:], r.line[r.at:])
		n += copied
		r.at = (r.at + copied) % len(r.line)
	}
	return n, nil
}
