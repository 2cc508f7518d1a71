package olap_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// A storm plays histories in one store.
type storm struct {
	*testing.T
	store  driver.Conn
	stamps *olaptest.Stamps
	paths  map[string]int

	answers, judged int
	*play
}

// A play is a history that is being played.
type play struct {
	stormDraw
	seed      int
	truth     *olaptest.Truth
	shift     time.Duration
	farthest  time.Duration // shift was
	setBacks  int
	servers   []*stormServer
	machines  []*machine
	tasks     []*task
	toStore   []olaptest.Records
	stored    []olaptest.Records
	questions []*asked
	last      int      // the number of the last question
	pages     []*asked // whose next page was not asked for
	now       int      // number of the step

	purged     map[string]bool // person of an organization
	purging    int             // purges and rebuilds in progress
	purgingOf  string          // the organization of which somebody is purged
	inserting  bool            // an insert is in flight
	unresolved time.Time       // rows that contradict others were stored then, which no refresh has seen; zero for none
	unread     bool            // nobody has read the clock since it was set back
	broken     bool
}

// A stormServer is an engine with its connection.
type stormServer struct {
	held   *olaptest.Held
	engine *olap.Engine
	as     uint64
	inline bool
}

// A machine does what is not asked for, one thing at a time.
type machine struct {
	held      *olaptest.Held
	refresher *rollup.Refresher
	checker   *rollup.Checker
	busy      bool
}

func newStorm(t *testing.T) *storm {
	conn := olaptest.OpenStore(t).Conn()
	return &storm{T: t, store: conn, stamps: olaptest.StampsOf(t, conn), paths: map[string]int{}}
}

// storedIn selects the tables that have rows.
const storedIn = "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase()" +
	" AND engine LIKE '%MergeTree' AND name NOT LIKE 'schema%' AND name != 'stamp_shift' AND total_rows > 0"

// begin empties the store and draws what a history is about.
func (s *storm) begin(seed int) {
	var filled []string
	if err := s.store.QueryRow(context.Background(), storedIn).Scan(&filled); err != nil {
		s.Fatal(err)
	}
	for _, table := range filled {
		s.exec("TRUNCATE TABLE " + table)
	}
	p := &play{seed: seed, stormDraw: stormDraw{rand.New(rand.NewPCG(uint64(seed), 1))}, truth: &olaptest.Truth{},
		purged: map[string]bool{}}
	s.play = p
	p.broken = p.oneIn(4)
	s.setClock(0)
	for _, organization := range []string{"acme", "umbra"} {
		s.drawRecords(organization)
	}
	p.Shuffle(len(p.toStore), func(i, j int) { p.toStore[i], p.toStore[j] = p.toStore[j], p.toStore[i] })
	for range 2 {
		server := &stormServer{held: olaptest.Hold(s.store), inline: p.oneIn(8)}
		if !p.oneIn(5) {
			server.as = 10_000_000
		} else if p.oneIn(2) {
			server.as = 60_000
		}
		s.start(server)
		p.servers = append(p.servers, server)
	}
	for range 4 {
		held := olaptest.Hold(s.store)
		p.machines = append(p.machines, &machine{held: held, refresher: rollup.New(held, quiet, rollup.Margin),
			checker: rollup.NewChecker(held, olaptest.Anyone, quiet)})
	}
	for n := range 3 {
		organization := []string{"acme", "acme", "umbra"}[p.IntN(3)]
		draw := olaptest.DrawQuery
		if !p.oneIn(3) {
			draw = olaptest.DrawSum
		}
		q := rapid.Custom(draw).Example(seed*100 + n)
		if p.oneIn(2) {
			q.Range.Start, q.Range.End = "2022-09-01", "2023-08-31"
		}
		if p.oneIn(2) {
			q.Limit = 1 + p.IntN(3)
		}
		p.questions = append(p.questions, &asked{organization: organization, query: q})
	}
	half := len(p.toStore) / 2
	first := p.toStore[:half]
	p.stored, p.toStore = first, p.toStore[half:]
	if !p.broken { // of copies that contradict each other no two may be stored in one millisecond
		first = []olaptest.Records{olaptest.Join(first)}
	}
	for _, records := range first {
		s.put(records)
	}
	s.pass(time.Minute)
	s.readClock()
}

func (s *storm) start(server *stormServer) {
	server.engine = olap.NewEngine(server.held, []byte("secret"))
	server.engine.CacheAnswers(1 << 20)
	if s.broken { // conflicts are known as soon as they are found, and not within seconds
		server.engine.CacheNoSizes()
	}
	server.engine.Use(plan.Options{Records: server.as, NoCachedDelta: server.inline})
}

// drawRecords draws what is stored of an organization, in inserts of one table.
func (s *storm) drawRecords(organization string) {
	batches := rapid.Custom(func(t *rapid.T) []olaptest.Records {
		if s.broken {
			return olaptest.DrawBroken(t, organization)
		}
		records := olaptest.DrawRecords(t, organization)
		for i := range rapid.IntRange(0, min(3, len(records.Runs))).Draw(t, "ties") {
			tied := records.Runs[i]
			tied.Status = rapid.SampledFrom([]string{"COMPLETED", "FAILED", "RUNNING"}).Draw(t, "tied status")
			records.Runs = append(records.Runs, tied)
		}
		return append(records.Batches(t), records.Batches(t)...)
	}).Example(s.seed*10 + len(organization))
	narrow := !s.oneIn(4) // few months, whose parts cost less
	for _, b := range batches {
		for i := range b.Runs {
			if narrow {
				b.Runs[i].CreatedAt = nearby(b.Runs[i].CreatedAt)
			}
		}
		for i := range b.Attributions {
			if narrow {
				b.Attributions[i].OccurredAt = nearby(b.Attributions[i].OccurredAt)
			}
		}
	}
	holder := map[string]string{} // so that no slug ever is of two agents
	for _, b := range batches {
		for i, a := range b.Agents {
			if a.Slug != nil && holder[*a.Slug] == "" {
				holder[*a.Slug] = a.ID.String()
			}
			if a.Slug != nil && holder[*a.Slug] != a.ID.String() {
				b.Agents[i].Slug = nil
			}
		}
		if len(b.Agents) > 0 {
			s.toStore = append(s.toStore, olaptest.Records{Agents: b.Agents})
		}
		for _, part := range parts(s.stormDraw, len(b.Runs)) {
			s.toStore = append(s.toStore, olaptest.Records{Runs: b.Runs[part[0]:part[1]]})
		}
		for _, part := range parts(s.stormDraw, len(b.Attributions)) {
			s.toStore = append(s.toStore, olaptest.Records{Attributions: b.Attributions[part[0]:part[1]]})
		}
	}
}

// nearby is an instant within three weeks, another one for instants that differ by a little.
func nearby(at time.Time) time.Time {
	const span = 20 * 24 * time.Hour
	first := time.Date(2022, 9, 8, 0, 0, 0, 0, time.UTC)
	return first.Add((at.Sub(first)%span + span) % span)
}

// parts cuts n rows into parts, from and up to.
func parts(d stormDraw, n int) (all [][2]int) {
	for from := 0; from < n; {
		to := min(n, from+1+d.IntN(12))
		all = append(all, [2]int{from, to})
		from = to
	}
	return all
}

// history plays one.
func (s *storm) history(seed int) {
	s.begin(seed)
	for s.now = range 12 + s.IntN(14) {
		s.step()
		for _, one := range s.tasks {
			if one.until <= s.now {
				s.free(one)
			}
		}
		if s.Failed() {
			break
		}
	}
	s.freeAll()
	if s.Failed() {
		return
	}
	s.end()
}

func (s *storm) exec(sql string, args ...any) {
	s.Helper()
	if err := s.store.Exec(context.Background(), sql, args...); err != nil {
		s.Fatal(err)
	}
}

// clock is the store's, with its jumps.
func (s *storm) clock() time.Time {
	now, err := snapshot.Now(context.Background(), s.store)
	if err != nil {
		s.Fatal(err)
	}
	return now.Add(s.shift)
}

// setClock moves the store's clock.
func (s *storm) setClock(to time.Duration) {
	s.shift, s.farthest = to, max(to, s.farthest)
	s.stamps.Shift(s, to)
	for _, server := range s.servers {
		server.held.Shift(to)
	}
	for _, m := range s.machines {
		m.held.Shift(to)
	}
}

func (s *storm) say(format string, args ...any) {
	if *stormVerbose {
		s.Logf("%2d, %d changes, clock %v: %s", s.now, s.truth.States(), s.shift, fmt.Sprintf(format, args...))
	}
}
