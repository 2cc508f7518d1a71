package main

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/cost"
)

// A requestCost is what one request takes. Times are in milliseconds.
type requestCost struct {
	Median     float64 `json:"ms"`
	Engine     float64 `json:"engine_ms"` // of processors, as a mean; 0 where the system does not tell
	Server     float64 `json:"server_ms"` // likewise
	Statements float64 `json:"statements"`
	RowsRead   float64 `json:"rows_read"`
	// What the server allocates in Go, with what it does beside the requests.
	Allocations  float64 `json:"allocations"`
	AllocatedKiB float64 `json:"allocated_kib"`

	latency   *stats
	processor *stats // of the engine and the server, a turn each
}

// A questionCost is what a question of an organization takes, by us and by the naive SQL on merged tables.
type questionCost struct {
	Organization string      `json:"organization"`
	Runs         uint64      `json:"runs"`
	Question     string      `json:"question"`
	Ours         requestCost `json:"ours"`
	Reference    requestCost `json:"merged_naive"`
}

const (
	// costWindow is the least time for which each side is measured in a turn, and costTurns the most turns but where
	// one in twenty has to be seen.
	costWindow = 250 * time.Millisecond
	costTurns  = 3
)

// A tally is what the engine and the server have used and done so far.
type tally struct {
	engine, server       float64 // ms of processors; 0 where the system does not tell
	statements, rows     float64 // of queries, by the server's count
	allocations, kibytes float64 // in Go, of the server
}

// plus adds another tally, or subtracts it where sign is -1.
func (t tally) plus(other tally, sign float64) tally {
	return tally{
		t.engine + sign*other.engine, t.server + sign*other.server,
		t.statements + sign*other.statements, t.rows + sign*other.rows,
		t.allocations + sign*other.allocations, t.kibytes + sign*other.kibytes,
	}
}

// serverMetrics are read into a tally.
var serverMetrics = []string{"runlens_query_statements_total", "runlens_query_rows_read_total",
	"go_memstats_mallocs_total", "go_memstats_alloc_bytes_total"}

// readMetrics reads a tally but for the processors, which the reading itself uses.
func (b *bench) readMetrics(ctx context.Context, t *tally) error {
	m, err := b.server.Metrics(ctx, serverMetrics...)
	if err == nil {
		t.statements, t.rows, t.allocations, t.kibytes = m[0], m[1], m[2], m[3]/(1<<10)
	}
	return err
}

func (b *bench) readProcessors(t *tally) error {
	engine, err := b.engineProcess()
	if err != nil {
		return err
	}
	ofEngine, _ := processorTime(engine.PID)
	servers := []int{b.server.PID()}
	if b.before != nil {
		servers = append(servers, b.before.PID())
	}
	ofServer, _ := processorTime(servers...)
	t.engine, t.server = milliseconds(ofEngine), milliseconds(ofServer)
	return nil
}

// costs measures what a request of each side takes, in at most so many turns. Each is run once beforehand, unmeasured.
func (b *bench) costs(ctx context.Context, turns int, sides ...side) ([]requestCost, error) {
	used := make([]sideUsage, len(sides))
	for turn := -1; turn < min(turns, b.Repeat); turn++ {
		for i, run := range sides {
			var err error
			if turn < 0 {
				err = run(ctx)
			} else {
				err = b.costTurn(ctx, run, &used[i])
			}
			if err != nil {
				return nil, err
			}
		}
	}
	found := make([]requestCost, len(sides))
	for i := range sides {
		found[i] = used[i].perRequest()
	}
	return found, nil
}

// A sideUsage is what all requests of a side used.
type sideUsage struct {
	tally
	latencies  []float64 // ms, a request each
	processors []float64 // ms, the mean of a turn each
}

// costTurn adds what a turn of a side used.
func (b *bench) costTurn(ctx context.Context, run side, used *sideUsage) error {
	var own, before, after tally // a reading uses memory of the server, too
	for _, t := range []*tally{&own, &before} {
		if err := b.readMetrics(ctx, t); err != nil {
			return err
		}
	}
	if err := b.readProcessors(&before); err != nil {
		return err
	}
	measured, meter := cost.Measure(ctx)
	n, least := 0, (b.Repeat+costTurns-1)/costTurns
	for began := time.Now(); n < least || time.Since(began) < min(costWindow, b.Budget); n++ {
		start := time.Now()
		if err := run(measured); err != nil {
			return err
		}
		used.latencies = append(used.latencies, milliseconds(time.Since(start)))
	}
	if err := b.readProcessors(&after); err != nil {
		return err
	}
	if err := b.readMetrics(ctx, &after); err != nil {
		return err
	}
	turn := after.plus(before, -1)
	turn.allocations -= before.allocations - own.allocations
	turn.kibytes -= before.kibytes - own.kibytes
	// A side that does not go through the server executes its statements here.
	turn.statements += float64(meter.Cost().Statements)
	turn.rows += float64(meter.Cost().Rows)
	used.tally = used.plus(turn, 1)
	used.processors = append(used.processors, (turn.engine+turn.server)/float64(n))
	return nil
}

func (u sideUsage) perRequest() requestCost {
	latency := statsOf(u.latencies)
	n := float64(latency.Samples)
	return requestCost{
		Median: latency.Median, Engine: u.engine / n, Server: u.server / n,
		Statements: u.statements / n, RowsRead: u.rows / n, Allocations: u.allocations / n, AllocatedKiB: u.kibytes / n,
		latency: latency, processor: statsOf(u.processors),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
