package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/clickhouse"
)

// What pushed records may take of the memory of a server, all together and those of one key. With what decodes and
// encodes them, and the rest of a server, that stays below 256 MiB.
const (
	pushBytes       = 64 << 20
	pushBytesPerKey = 48 << 20
)

// pushFlags say where serve takes records, and how many requests.
type pushFlags struct {
	IngestListen             string `env:"RUNLENS_INGEST_LISTEN" placeholder:"HOST:PORT" help:"@ingest_listen"`
	IngestRateLimitPerMinute int    `env:"RUNLENS_INGEST_RATE_LIMIT_PER_MINUTE" default:"6000" help:"@ingest_rate_limit"`
}

// config is what a server of the cells needs to take records.
func (f pushFlags) config(all servedCells) *httpapi.PushConfig {
	return &httpapi.PushConfig{
		Pusher: all, Rates: limit.NewKeyed(f.IngestRateLimitPerMinute, httpapi.RateWindow),
		Memory: limit.NewShares(pushBytes, pushBytesPerKey),
	}
}

// pushMemory is the metric of the memory that pushed records take.
func pushMemory(memory *limit.Shares) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "runlens_push_waiting_bytes",
		Help: "Bytes of pushed records that are being received or wait to be stored."},
		func() float64 { return float64(memory.Taken()) })
}

// Store is that of httpapi.Pusher.
func (s servedCells) Store(ctx context.Context, r *push.Records, release func()) error {
	c, err := s.cell(r.Organization)
	if err != nil {
		release()
		return err
	}
	opened, err := c.get()
	if err != nil {
		release()
		return err
	}
	return opened.lane.Store(ctx, r, release)
}

// newLane returns the lane of the cell, whose store was opened.
func (c *cell) newLane(store *clickhouse.Server, metrics *push.Metrics) *push.Lane {
	writer := write.NewWriter(store.Conn(), write.Retry{Logger: c.logger, Patience: push.Patience})
	writer.Gate = c.settings.gate(store.Conn())
	return push.NewLane(writer, metrics, c.logger)
}

// check refuses settings that cannot work.
func (f pushFlags) check(c serveCmd) error {
	if f.IngestRateLimitPerMinute < 1 {
		return usageError{errors.New("--ingest-rate-limit-per-minute must be greater than 0")}
	}
	for _, other := range []string{c.Listen, c.AdminListen} {
		if f.IngestListen == other && !endsWithPortZero(other) {
			return usageError{errors.New("--ingest-listen must differ from --listen and --admin-listen")}
		}
	}
	return nil
}
