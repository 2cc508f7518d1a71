package worker_test

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// reach lets new connections go to some of the servers only, and ends those that are open.
func (l *balancer) reach(servers ...string) {
	l.mu.Lock()
	l.servers = servers
	l.mu.Unlock()
	l.cut()
}

// A standby that is behind what was copied from its primary takes nothing out of the store, neither newer versions nor
// records that it lacks.
func TestComparisonByAServerBehind(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	l, standby := b.behind()
	primaryAt, standbyAt := l.servers[0], l.servers[1]
	l.reach(primaryAt)
	log := &logtest.Buffer{}
	status, _ := b.start(func(o *worker.Options) {
		o.ReconcileEvery, o.DeleteMissing = 10*time.Millisecond, true
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	b.untilCaughtUp(status, normalize.Kinds...)
	b.exec(standby, "SELECT pg_wal_replay_pause()")
	b.do("UPDATE runs SET status = 'COMPLETED', updated_at = now() WHERE run_id = lpad('1', 32, '0')::uuid")
	b.insert("acme", 51, 10)
	const completed = "SELECT count() FROM runs FINAL WHERE bitAnd(bitShiftRight(state, 6), 15) = 9"
	newest := func() bool { return b.count(runs) == 60 && b.count(completed) == 1 }
	b.until("all is stored", newest)
	l.reach(standbyAt)
	b.until("the comparison fails", func() bool {
		if !newest() {
			t.Fatal("the store went back")
		}
		return strings.Contains(log.String(), "a standby that may lack")
	})
	l.reach(primaryAt)
	b.do("DELETE FROM runs WHERE run_id = lpad('2', 32, '0')::uuid")
	b.until("a deletion by the primary", func() bool { return b.count(runs) == 59 })
}

// A standby that has its address alone is the source, and so right. One of a list may be behind the others, whether
// they have answered yet or not.
func TestLatestOfStandbys(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	alone := b.standby()
	both, err := url.Parse(alone)
	if err != nil {
		t.Fatal(err)
	}
	both.RawQuery = "host=" + both.Hostname() + ",localhost&port=" + both.Port() + ",1"
	both.Host = ""
	for address, want := range map[string]error{alone: nil, both.String(): postgres.ErrBehind} {
		b.open(address, postgres.DefaultMapping)
		err := b.source.OfIDs(postgres.Latest(t.Context()), normalize.KindRun, "acme", []uuid.UUID{{}}, nil)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}
