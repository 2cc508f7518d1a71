package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/snapshot"
)

// statement compiles the question of a class as the server does for a request that it has answered before. state is
// that of the rollup for a large organization; zero for a small one.
func (b *bench) statement(c class, body []byte, state snapshot.Log) (compile.Statement, error) {
	q, err := query.Parse(body)
	if err != nil {
		return compile.Statement{}, err
	}
	facts := plan.Facts{
		Records: c.size, Watermark: state.StoreWatermark(), Lease: state.Lease, Damage: state.LastDamage,
	}
	if !facts.Watermark.IsZero() {
		facts.AsOf = state.Now
	}
	return compile.Compile(compile.Input{Plan: plan.Of(q).Plan(facts), Organization: c.first()}), nil
}

// runBare executes a compiled statement through the driver, with the server's settings, and decodes its rows. exec.Run
// is that and no more; what it leaves out is the server: HTTP, the key, the limits, boundaries of several pages, JSON.
func runBare(ctx context.Context, conn driver.Conn, s compile.Statement) (*exec.Table, error) {
	return exec.Run(ctx, conn, s, uuid.New(), "bench: bare")
}

// A memoryProbe is a connection whose statements report the most memory they used in ClickHouse. The embedded
// engine has no query_log; it says so at the end of an answer.
type memoryProbe struct {
	driver.Conn
	peak atomic.Int64 // bytes, of the last statement
	next http.RoundTripper
}

// openMemoryProbe connects to the engine of this run.
func (b *bench) openMemoryProbe() (*memoryProbe, error) {
	engine, err := b.engineProcess()
	if err != nil {
		return nil, err
	}
	password, err := b.enginePassword()
	if err != nil {
		return nil, err
	}
	p := &memoryProbe{}
	p.Conn, err = clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{engine.Addr},
		Auth:     clickhouse.Auth{Username: engineUser, Password: password, Database: b.store.Database()},
		TransportFunc: func(t *http.Transport) (http.RoundTripper, error) {
			t.Proxy = nil
			p.next = t
			return p, nil
		},
	})
	return p, err
}

// RoundTrip requests an answer whose header comes after the work, and reads the memory from it.
func (p *memoryProbe) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	parameters := request.URL.Query()
	parameters.Set("wait_end_of_query", "1")
	parameters.Set("max_untracked_memory", "4096") // of each thread; by default 4 MiB go unseen
	request.URL.RawQuery = parameters.Encode()
	response, err := p.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	var summary struct {
		MemoryUsage string `json:"memory_usage"`
	}
	if json.Unmarshal([]byte(response.Header.Get("X-ClickHouse-Summary")), &summary) == nil {
		bytes, _ := strconv.ParseInt(summary.MemoryUsage, 10, 64)
		p.peak.Store(bytes)
	}
	return response, nil
}

// engineUser owns the data of the embedded engine.
const engineUser = "runlens"

func (b *bench) enginePassword() (string, error) {
	password, err := os.ReadFile(filepath.Join(b.storeDir(), "engine", "password"))
	return string(password), err
}

func (b *bench) engineProcess() (process.Engine, error) { return b.product(b.storeDir()).Engine() }
