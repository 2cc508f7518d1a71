package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// A manner is what the process that moves does at one of its statements, when others have done something.
type manner string

const (
	goesOn  manner = "goes on"
	dies    manner = "dies before it"
	repeats manner = "has sent it before, too"
	late    manner = "sends it once more when everything is over"
)

// Whatever others do before any statement of a move, or between two sendings of it, and whether the command dies there
// or the statement comes once more when everything is over: when a command has ended the move, the new cell has what
// was acknowledged, once, and nothing of who was purged, and the old one has nothing. It tries one in 29 of thousands
// of cases, with -short one in 3,989, from a random one on: primes, so that each of them is tried in some run.
func TestEveryStatementOfAMove(t *testing.T) {
	t.Parallel()
	b := newDisturbed(t)
	of := 29
	if testing.Short() {
		of = 3989
	}
	number, tried := rand.IntN(of), 0
	for side, statements := range b.statements() {
		for statement := range statements {
			for _, what := range slices.Sorted(maps.Keys(b.others())) {
				for _, how := range []manner{goesOn, dies, repeats, late} {
					if number++; number%of != 0 {
						continue
					}
					b.name = fmt.Sprintf("statement %d to the %s cell, when %s: %s", statement+1, side, what, how)
					b.disturb(side, statement+1, what, how)
					if tried++; t.Failed() {
						t.FailNow()
					}
				}
			}
		}
	}
	t.Logf("%d moves, %d records, %d people purged", tried, b.stored, len(b.gone))
}

// A disturbed bed moves acme to and fro. Each record has a person of its own.
type disturbed struct {
	*bed
	name     string
	from, to string
	stored   int          // how many records were acknowledged, or are about to be
	gone     map[int]bool // of which the person is purged
	writing  chan error   // the result of a write that is under way
	purging  bool         // a purge began in the old cell, and is to be completed in the new one
}

func newDisturbed(t *testing.T) *disturbed {
	b := &disturbed{bed: newBed(t), from: "a", to: "b", gone: map[int]bool{}}
	b.write()
	b.must(<-b.writing)
	return b
}

// others are what other processes do.
func (b *disturbed) others() map[string]func() {
	return map[string]func(){
		"nobody has done anything":      func() {},
		"somebody has stored something": b.write,
		"a person was purged":           func() { b.purging = true; _ = b.purge(b.from) }, // and will be again
		"another command has run":       func() { b.another(b.subject(), nil) },
		"another command has died":      func() { b.another(b.subject(), until(move.Copied)) },
		"the slot was moved":            func() { b.another(cells.SlotSubject(cells.SlotOf(b.acme)), nil) },
		"servers have refreshed":        b.follow,
	}
}

// write begins to store a new record, and a newer version of the first one.
func (b *disturbed) write() {
	batch, first := records(b.acme, b.stored, 1), records(b.acme, 0, 1)
	first.Runs[0].UpdatedAt = b.version(b.stored)
	if batch.Runs = append(batch.Runs, first.Runs...); b.stored == 0 {
		batch.Runs = first.Runs
	}
	batch.Attributions[0].UserIdentifier = person(b.stored)
	for i := range batch.Runs {
		batch.Runs[i].InitiatorIdentifier = nil
	}
	b.stored++
	b.forget()
	writer, done := b.writer(b.conns), make(chan error, 1)
	b.writing = done
	go func() { done <- writer.Write(b.Context(), batch) }()
	select { // it may have to wait for the move
	case err := <-done:
		done <- err
	case <-time.After(patience):
	}
}

// patience is how long something is waited for that may wait for what waits. It decides which orders of events are
// tried, and not what they have to lead to.
const patience = 300 * time.Millisecond

// version is that of the first run when a record is stored, newer than all others.
func (b *disturbed) version(record int) int64 { return created.AddDate(1, 0, record).UnixMilli() }

func person(record int) string { return fmt.Sprintf("person-%d@x.example", record) }

// purge takes out the person of the last record in a cell, as a command does that began when acme was there.
func (b *disturbed) purge(cell string) error {
	last := b.stored - 1
	b.gone[last] = true
	return purge.Person(b.acme, person(last)).Run(b.Context(), b.conns[cell], func(purge.Step) {})
}

func (b *disturbed) another(subject cells.Subject, reached func(move.Step) error) {
	_ = b.moveOver(b.conns, subject, b.to, reached) // which of two goes on is theirs to agree on
}

// follow is what servers of both cells do, and try again when others do not let them.
func (b *disturbed) follow() {
	for _, cell := range b.names() {
		_ = rollup.New(b.conns[cell], quiet, 0).Refresh(b.Context())
		_, _ = b.checker(cell, new(bytes.Buffer)).Step(b.Context())
	}
}

// statements is how many statements a move sends to the old and the new cell.
func (b *disturbed) statements() map[string]int {
	conns, from, to := maps.Clone(b.conns), olaptest.Hold(b.conns[b.from]), olaptest.Hold(b.conns[b.to])
	conns[b.from], conns[b.to] = from, to
	b.must(b.moveOver(conns, b.subject(), b.to, nil))
	b.from, b.to = b.to, b.from
	return map[string]int{"old": from.Sent(), "new": to.Sent()}
}

// hold returns the connections of a command, of which that to the old or the new cell can be held.
func (b *disturbed) hold(side string) (*olaptest.Held, map[string]driver.Conn) {
	cell := b.from
	if side == "new" {
		cell = b.to
	}
	held, conns := olaptest.Hold(b.conns[cell]), maps.Clone(b.conns)
	conns[cell] = held
	return held, conns
}

// disturb moves acme once, with a disturbance at a statement.
func (b *disturbed) disturb(side string, number int, what string, how manner) {
	b.write()
	b.must(<-b.writing)
	ctx, die := context.WithCancel(b.Context())
	defer die()
	b.writing, b.purging = nil, false
	again, reached := func() {}, false
	held, conns := b.hold(side)
	switch how {
	case repeats:
		held.Repeat(number)
	case late:
		again = held.LateAt(number)
	}
	others := make(chan struct{})
	held.Before(number, func() {
		reached = true
		go func() {
			defer close(others)
			b.others()[what]()
		}()
		select { // they may have to wait for the one that is held
		case <-others:
		case <-time.After(patience):
		}
		if how == dies {
			die()
		}
	})
	err := move.Run(ctx, b.options(conns, func(move.Step) error { return nil }), b.subject(), b.to)
	if err != nil && !reached {
		b.Errorf("%s: the first command: %v", b.name, err)
	}
	if reached {
		b.end(others)
	}
	b.compare("")
	again()
	b.compare(" when it came late")
	b.from, b.to = b.to, b.from
}

// end runs the command until the move has ended, when the others have.
func (b *disturbed) end(others <-chan struct{}) {
	<-others
	for tries := 1; ; tries++ {
		err := b.move(b.subject(), b.to, nil)
		if err == nil || errors.Is(err, move.ErrThere) {
			break
		}
		if tries == 5 {
			b.Fatalf("%s: the command, %d times: %v", b.name, tries, err)
		}
	}
	if b.writing != nil {
		if err := <-b.writing; err != nil {
			b.Errorf("%s: who stores: %v", b.name, err)
		}
	}
	if b.purging {
		b.must(b.purge(b.to))
	}
}

// compare compares what both cells have with what was acknowledged.
func (b *disturbed) compare(when string) {
	b.Helper()
	if left := b.rows(b.from, b.acme); len(left) > 0 {
		b.Errorf("%s%s: the old cell has %v", b.name, when, left)
	}
	var runs, attributions, purged uint64
	var newest int64
	var people []string
	for record := range b.gone {
		people = append(people, person(record))
	}
	b.must(b.conns[b.to].QueryRow(b.Context(), "SELECT count(), toInt64(max(bitShiftRight(state, $3))) - $4,"+
		" (SELECT count() FROM attributions FINAL WHERE organization_id = $1),"+
		" (SELECT count() FROM attributions WHERE has($2, user_identifier)) FROM runs FINAL WHERE organization_id = $1",
		string(b.acme), people, schema.StateVersionShift, schema.StateEpochOffsetMillis).
		Scan(&runs, &newest, &attributions, &purged))
	if n := uint64(b.stored); runs != n || attributions+uint64(len(people)) != n || purged > 0 {
		b.Errorf("%s%s: %d runs, %d attribution records, %d of people who were purged, of %d and %d people",
			b.name, when, runs, attributions, purged, n, len(people))
	}
	if want := b.version(b.stored - 1); newest != want {
		b.Errorf("%s%s: the newest version is %d, want %d", b.name, when, newest, want)
	}
}
