package write_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/olaptest"
)

// A cutter passes connections on, and cuts them after a number of bytes of what is sent.
type cutter struct {
	net.Listener
	dir    string       // of the engine's data
	passed atomic.Int64 // bytes
	cutAt  atomic.Int64 // of passed; 0 for no cut
}

func (c *cutter) serve() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		server, err := c.dial()
		if err != nil {
			client.Close()
			continue
		}
		cut := func() {
			client.Close()
			server.Close()
		}
		go func() {
			defer cut()
			for {
				n, err := io.CopyN(server, client, 1024)
				passed, at := c.passed.Add(n), c.cutAt.Load()
				if err != nil || at > 0 && passed > at && c.cutAt.CompareAndSwap(at, 0) {
					return
				}
			}
		}()
		go func() {
			defer cut()
			io.Copy(client, server)
		}()
	}
}

// dial looks the address up every time: a connection that breaks in the middle of an insert can end this
// build of the engine, which is then started again elsewhere.
func (c *cutter) dial() (net.Conn, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, "engine", "address.json"))
	if err != nil {
		return nil, err
	}
	var published struct{ Addr string }
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	return net.Dial("tcp", published.Addr)
}

// inOneMonth is a batch for one partition.
func inOneMonth(n int) *write.Batch {
	b := batch(n)
	for i := range b.Attributions {
		b.Attributions[i].OccurredAt = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).UnixMilli()
	}
	return b
}

// Connections that break in the middle of a batch lose nothing and double nothing.
func TestConnectionsCutInTheMiddleOfABatch(t *testing.T) {
	engine, dir := olaptest.OwnEngine(t)
	password, err := os.ReadFile(filepath.Join(dir, "engine", "password"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	c := &cutter{Listener: listener, dir: dir}
	go c.serve()
	address := url.URL{
		Scheme: "http",
		User:   url.UserPassword("runlens", string(password)),
		Host:   listener.Addr().String(),
		Path:   "/" + engine.Database(),
	}
	cut, err := clickhouse.Open(context.Background(),
		clickhouse.Config{URL: address.String(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cut.Close() })

	const batches, size = 5, 5000
	retries := 0
	writer := write.NewWriter(cut.Conn(),
		write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: time.Minute, Count: func() { retries++ }})
	var sent int64 // by a batch that is not cut
	for n := range batches {
		before := c.passed.Load()
		if sent > 0 {
			c.cutAt.Store(before + 1 + (rand.Int64N(sent)+sent*int64(n-1))/(batches-1))
		}
		if err := writer.Write(context.Background(), inOneMonth(size)); err != nil {
			t.Fatal(err)
		}
		if sent == 0 {
			sent = (c.passed.Load() - before) * 9 / 10
		} else if c.cutAt.Load() != 0 {
			t.Errorf("batch %d was not cut", n)
		}
	}
	if retries == 0 {
		t.Error("nothing was sent again")
	}
	var rows, distinct uint64
	if err := engine.Conn().QueryRow(context.Background(), "SELECT count(), uniqExact(attribution_id) FROM "+
		"attributions FINAL").Scan(&rows, &distinct); err != nil {
		t.Fatal(err)
	}
	if rows != batches*size || distinct != batches*size {
		t.Errorf("%d records, %d distinct, want %d of both", rows, distinct, batches*size)
	}
}
