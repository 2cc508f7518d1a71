// Package cost measures what statements take in ClickHouse, as ClickHouse reports it beside their answers: over the
// native protocol in packets of progress and profile events, over HTTP in the header X-ClickHouse-Summary.
package cost

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A Cost is what statements took.
type Cost struct {
	Statements  uint64        // that ClickHouse began to execute
	Rows, Bytes uint64        // read from tables; bytes are uncompressed
	Elapsed     time.Duration // in ClickHouse; the sum of statements that may have run at once
	// Processor is the time of all threads, and PeakBytes the most memory that a statement had at once. Only the native
	// protocol reports them: they are nil over HTTP, and before a statement has run.
	Processor *time.Duration
	PeakBytes *uint64
}

// A Meter adds up what the statements of its context take. It is safe for concurrent use.
type Meter struct {
	outer *Meter // of the context around; nil for none

	statements, rows, bytes  atomic.Uint64
	elapsed, processor, peak atomic.Uint64 // in nanoseconds, microseconds, bytes

	profiles atomic.Bool // the last two were reported
}

type meterKey struct{}

// Measure returns a context whose statements the Meter measures, and so does the meter of ctx, if it has one. Who
// waits for another one's statement (cache.Group) took nothing.
func Measure(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{}
	m.outer, _ = ctx.Value(meterKey{}).(*Meter)
	ctx = context.WithValue(ctx, meterKey{}, m)
	return clickhouse.Context(ctx, clickhouse.WithProgress(m.progressed), clickhouse.WithProfileEvents(m.profiled)), m
}

// Cost is what was reported so far.
func (m *Meter) Cost() Cost {
	c := Cost{Statements: m.statements.Load(), Rows: m.rows.Load(), Bytes: m.bytes.Load(),
		Elapsed: time.Duration(m.elapsed.Load())}
	if m.profiles.Load() {
		processor, peak := time.Duration(m.processor.Load())*time.Microsecond, m.peak.Load()
		c.Processor, c.PeakBytes = &processor, &peak
	}
	return c
}

func (m *Meter) executed(statements uint64) {
	for ; m != nil; m = m.outer {
		m.statements.Add(statements)
	}
}

func (m *Meter) read(rows, bytes, nanoseconds uint64) {
	for ; m != nil; m = m.outer {
		m.rows.Add(rows)
		m.bytes.Add(bytes)
		m.elapsed.Add(nanoseconds)
	}
}

// progressed gets what was read since the last packet.
func (m *Meter) progressed(p *clickhouse.Progress) { m.read(p.Rows, p.Bytes, uint64(p.Elapsed)) }

// profiled gets by how much counters grew since the last packet, and what gauges have.
func (m *Meter) profiled(events []clickhouse.ProfileEvent) {
	var micros, peak uint64
	for _, e := range events {
		switch e.Name {
		case "UserTimeMicroseconds", "SystemTimeMicroseconds":
			micros += uint64(e.Value)
		case "InitialQuery":
			m.executed(uint64(e.Value))
		case "MemoryTrackerPeakUsage":
			peak = max(peak, uint64(e.Value))
		}
	}
	for ; m != nil; m = m.outer {
		m.profiles.Store(true)
		m.processor.Add(micros)
		for before := m.peak.Load(); peak > before && !m.peak.CompareAndSwap(before, peak); before = m.peak.Load() {
		}
	}
}

// A Transport sends statements over HTTP and measures them, but for the first one that is answered: the driver has a
// transport for each connection, over which it asks ClickHouse for its version before anything else.
type Transport struct {
	*http.Transport
	greeted atomic.Bool
}

// RoundTrip sends a statement. Its summary is whole where ClickHouse keeps the answer, of at most a MiB, until its end;
// of a longer answer it says what was read when the first bytes were sent.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(request)
	m, measured := request.Context().Value(meterKey{}).(*Meter)
	if err != nil || !t.greeted.Swap(true) || !measured {
		return response, err
	}
	m.executed(1)
	var summary struct {
		Rows        uint64 `json:"read_rows,string"`
		Bytes       uint64 `json:"read_bytes,string"`
		Nanoseconds uint64 `json:"elapsed_ns,string"`
	}
	// A proxy may have taken the header away: then nothing is known, which is no fault of the statement.
	if json.Unmarshal([]byte(response.Header.Get("X-ClickHouse-Summary")), &summary) == nil {
		m.read(summary.Rows, summary.Bytes, summary.Nanoseconds)
	}
	return response, err
}
