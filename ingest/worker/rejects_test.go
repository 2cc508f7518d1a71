package worker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// A page of records that break a rule is held up to a bound, however long their texts are. All are rejected, in order.
// Where rejects cannot be written the worker ends, and does not take the source for what failed.
func TestPageOfLongRejects(t *testing.T) {
	const records = 30
	name := bytes.Repeat([]byte("x"), 1<<20)
	var rejected []ingest.Reject
	var failure error
	w := newWorker(Options{Name: "test", Logger: slog.New(slog.DiscardHandler), Status: NewStatus(time.Now),
		OnReject: func(r ingest.Reject) error { rejected = append(rejected, r); return failure }})
	c := w.copiers[normalize.KindAgent]
	c.known = true
	read := func(_ context.Context, kind normalize.Kind, after postgres.Key, _ int,
		visit func(*source.Record, postgres.Key) error) (int, error) {
		record := source.Record{Raw: normalize.Raw{Kind: kind}}
		for n := range records {
			id := uuid.NewSHA1(uuid.Nil, []byte{byte(n)}).String()
			for i, value := range [][]byte{[]byte("acme"), []byte(id), name, nil, nil, []byte("2026-01-01T00:00:00Z")} {
				record.Raw.Values[i] = value
			}
			record.Line = n + 1
			if err := visit(&record, postgres.Key{At: time.Unix(1, 0), OfRow: true, ID: id, Organization: "acme"}); err != nil {
				return n, err
			}
			if held := n + 1 - len(rejected); held > maxRejectBytes>>20 {
				t.Fatalf("%d rejects of 1 MiB are held", held)
			}
		}
		return records, nil
	}
	if _, n, err := c.page(t.Context(), read, postgres.Key{}); err != nil || n != records || len(rejected) != records {
		t.Fatalf("%d records, %d rejects, %v", n, len(rejected), err)
	}
	for i, r := range rejected {
		if r.Line != i+1 || len(r.Record) < len(name) {
			t.Fatalf("reject %d is of row %d and has %d bytes", i, r.Line, len(r.Record))
		}
	}
	if k := w.Status.Report().Kinds[normalize.KindAgent]; k.Rejected != records || k.Stored != 0 {
		t.Errorf("%+v", k)
	}
	c.recent = newRecent()
	failure = &fs.PathError{Op: "write", Path: "rejects", Err: syscall.ENOSPC}
	if _, _, err := c.page(t.Context(), read, postgres.Key{}); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
