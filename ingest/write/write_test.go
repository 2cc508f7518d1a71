package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/olaptest"
)

var quiet = write.Retry{Logger: slog.New(slog.DiscardHandler)}

func batch(n int) *write.Batch {
	var b write.Batch
	for i := range n {
		b.Attributions = append(b.Attributions, normalize.Attribution{
			OrganizationID: "acme", AttributionID: uuid.New(), RunID: uuid.New(), AgentID: uuid.New(),
			UserIdentifier: "ada@example.com",
			ActivityType:   "interacted", RunInitiationType: "human", Source: "web",
			OccurredAt: time.Date(2000, time.Month(i), 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
		})
	}
	return &b
}

// rows counts what is stored, repeats included.
func rows(t *testing.T, conn driver.Conn) uint64 {
	t.Helper()
	var n uint64
	if err := conn.QueryRow(context.Background(), "SELECT count() FROM attributions").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// records counts what queries count: every record once.
func records(t *testing.T, conn driver.Conn) uint64 {
	t.Helper()
	var n uint64
	if err := conn.QueryRow(context.Background(), "SELECT count() FROM attributions FINAL").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A backfill touches more months than ClickHouse takes in one insert by default (100).
func TestABatchOverManyMonths(t *testing.T) {
	store := olaptest.OpenStore(t)
	if err := write.NewWriter(store.Conn(), quiet).Write(context.Background(), batch(150)); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, store.Conn()); n != 150 {
		t.Errorf("%d rows, want 150", n)
	}
}

// Of the contents that a batch has of an attribution record the first one is stored, whatever the clocks of the others,
// and every line counts as a record that was stored. The log says how many others there were, and so it does of records
// that were stored before, where the writer looks.
func TestTheFirstContentOfABatchIsStored(t *testing.T) {
	store := olaptest.OpenStore(t)
	b := batch(9)
	for i := range b.Attributions {
		b.Attributions[i].AttributionID = b.Attributions[0].AttributionID
		b.Attributions[i].Source = fmt.Sprint("channel ", (i+4)%9)
	}
	b.Attributions[8].OrganizationID = "globex" // which has the same id for a record of its own
	var log bytes.Buffer
	writer := write.NewWriter(store.Conn(), write.Retry{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := writer.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(log.String(), "organization=acme record=attribution count=7\n"); found != 1 {
		t.Errorf("the log says it %d times, want once: %s", found, log.String())
	}
	for i, want := range []string{"organization=globex record=attribution count=1\n", ""} {
		log.Reset()
		again := write.Batch{Attributions: slices.Clone(b.Attributions[7:]), Once: true}
		again.Attributions[1].Source = fmt.Sprint("channel ", 2*i+1)
		if err := writer.Write(context.Background(), &again); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(log.String(), want) || strings.Count(log.String(), "\n") != strings.Count(want, "\n") {
			t.Errorf("the log says %q, want %q", log.String(), want)
		}
	}
	var sources []string
	if err := store.Conn().QueryRow(context.Background(),
		"SELECT arraySort(groupUniqArray(source)) FROM attributions").Scan(&sources); err != nil {
		t.Fatal(err)
	}
	if want := []string{"channel 3", "channel 4"}; !slices.Equal(sources, want) || len(b.Attributions) != 9 {
		t.Errorf("stored %q of %d records, want %q of 9", sources, len(b.Attributions), want)
	}
}

// flaky fails the first sends, before or after ClickHouse has taken them.
type flaky struct {
	driver.Conn
	failures int
	after    bool
	err      error
	sends    int
}

type flakyBatch struct {
	driver.Batch
	conn *flaky
}

func (f *flaky) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	b, err := f.Conn.PrepareBatch(ctx, query, options...)
	return flakyBatch{b, f}, err
}

func (b flakyBatch) Send() error {
	b.conn.sends++
	if b.conn.failures == 0 {
		return b.Batch.Send()
	}
	b.conn.failures--
	if b.conn.after {
		if err := b.Batch.Send(); err != nil {
			return err
		}
	} else {
		b.Batch.Abort()
	}
	return b.conn.err
}

// A failure that passes is tried again, also where ClickHouse had taken the batch before the connection broke. The
// repeat changes nothing.
func TestRetriesCountOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		store := olaptest.OpenStore(t)
		conn := &flaky{Conn: store.Conn(), failures: 2, after: after, err: io.ErrUnexpectedEOF}
		if err := write.NewWriter(conn, quiet).Write(context.Background(), batch(5)); err != nil {
			t.Fatal(err)
		}
		if n := records(t, store.Conn()); n != 5 || conn.sends != 3 {
			t.Errorf("after %v: %d records in %d sends, want 5 in 3", after, n, conn.sends)
		}
	}
}

func TestOtherFailuresStopAtOnce(t *testing.T) {
	store := olaptest.OpenStore(t)
	broken := errors.New("broken")
	conn := &flaky{Conn: store.Conn(), failures: 1, err: broken}
	if err := write.NewWriter(conn, quiet).Write(context.Background(), batch(1)); !errors.Is(err, broken) ||
		conn.sends != 1 {
		t.Errorf("%v after %d sends", err, conn.sends)
	}
}

func TestCancellationEndsTheWait(t *testing.T) {
	store := olaptest.OpenStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	conn := &flaky{Conn: store.Conn(), failures: 1000, err: io.EOF}
	logger := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) { cancel() }), nil)) // the first retry is announced
	if err := write.NewWriter(conn, write.Retry{Logger: logger}).Write(ctx, batch(1)); !errors.Is(err, context.Canceled) &&
		!errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if conn.sends != 1 {
		t.Errorf("%d sends after the cancellation", conn.sends)
	}
}

// What fails for an hour is tried every 5 s at least, and logged a few times: at once, ever more rarely, and when it
// works again.
func TestLongTroubleIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began, tries := time.Now(), 0
		err := write.Retry{Logger: slog.New(slog.NewTextHandler(&log, nil))}.Do(t.Context(), "it", func() error {
			if tries++; time.Since(began) < time.Hour {
				return io.EOF
			}
			return nil
		})
		if lines := strings.Count(log.String(), "\n"); err != nil || tries < 720 || lines != 8 ||
			strings.Count(log.String(), "it failed, trying again") != 7 || !strings.Contains(log.String(), "failures=725 ") {
			t.Errorf("%v after %d tries; %d lines:\n%s", err, tries, lines, &log)
		}
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// An otherNode is an error as clickhouse.ErrOtherNode is one.
type otherNode struct{ error }

func (otherNode) Permanent() bool { return true }

func TestRetryable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&clickhouse.Exception{Code: 201}, true}, // a quota, for a while
		{&clickhouse.Exception{Code: 252}, true},
		{&clickhouse.Exception{Code: 241}, true},
		{&clickhouse.Exception{Code: 159}, true},
		{&clickhouse.Exception{Code: 202}, true},
		{clickhouse.ErrAcquireConnTimeout, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true},
		{&clickhouse.Exception{Code: 394}, true}, // canceled, as by a server that ends
		{&clickhouse.Exception{Code: 60}, false}, // unknown table
		{&clickhouse.Exception{Code: 62}, false}, // syntax
		{fmt.Errorf("wrapped: %w", syscall.ECONNRESET), true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{io.ErrUnexpectedEOF, true},
		{&url.Error{Op: "Post", Err: otherNode{}}, false},
		{&clickhouse.HTTPError{StatusCode: 502, Err: errors.New("a gateway's page")}, true},
		{&clickhouse.HTTPError{StatusCode: 429, Err: errors.New("a gateway's page")}, true},
		{&clickhouse.HTTPError{StatusCode: 404, Err: errors.New("another server's page")}, false},
		{&clickhouse.HTTPError{StatusCode: 503, Err: &clickhouse.Exception{Code: 60}}, false},
		{errors.New("anything else"), false},
	} {
		// What a reading of the store says of a failure passes as the failure does.
		for _, err := range []error{c.err, failure.Of("read", c.err)} {
			if got := write.Retryable(err); got != c.want {
				t.Errorf("%v: %v, want %v", err, got, c.want)
			}
		}
	}
}

// What ClickHouse has no memory for is overload, also for who pushed it (contract 4.21), and says what to change.
func TestOverloadStays(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]bool{241: true, 202: true, 252: false} {
		retry := write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: time.Nanosecond}
		err := retry.Do(t.Context(), "insert", func() error {
			return &clickhouse.Exception{Code: code, Message: "(total) memory limit exceeded"}
		})
		if errors.Is(err, failure.ErrOverloaded) != want {
			t.Errorf("%d: %v", code, err)
		}
		if code == 241 && !strings.Contains(err.Error(), "RUNLENS_ENGINE_MEMORY") {
			t.Errorf("%v does not say what to change", err)
		}
	}
}
