package olap

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// maxLooks is of how many organizations and sources the last look is remembered: a few MiB.
	maxLooks = 10_000
	// lookAge bounds how long that is.
	lookAge = time.Hour
	// idleFrom is how long ago the last row of an organization was stored where no other is expected at any moment.
	idleFrom = time.Second
	// freshFor is how old the boundary of a look may be to be told: requests in such quick succession share one.
	freshFor = 50 * time.Millisecond
	// behindNow is by how much a boundary is set behind the store's clock as the last look tells it, so that the next one, at the
	// same time as the statement, already finds it in the past.
	behindNow = 2 * time.Millisecond
)

// A look tells what is being stored (its counters has no Marks). Nothing with a stamp before oldest can appear any more; and nothing of the
// organization appeared since an earlier look that counted as many records. The inserts in flight are read first: one that is not among
// them, and ended since the earlier look, is counted (snapshot.Counters).
type look struct {
	oldest   time.Time // begin of the oldest insert in flight
	counters snapshot.Counters
	at       time.Time // by this server's clock, when the counters was known
	whole    bool      // every insert that is over is counted
}

// now is the store's clock, rather a little earlier than later.
func (l look) now() time.Time { return l.counters.Now.Add(time.Since(l.at)) }

// boundary is an instant until when everything stored was there at the look, and is all there will be.
func (l look) boundary() time.Time { return l.oldest.Add(-time.Millisecond).Truncate(time.Millisecond) }

// fresh reports whether boundary is recent, and has all of the organization's records.
func (l look) fresh() bool {
	return l.now().Sub(l.boundary()) < freshFor && l.counters.StoredUntil(l.boundary())
}

// firstPage answers with a page that another one may follow: they share its boundary. To read one that they can (snapshot.PageBoundary)
// takes a third of the time of a small statement. So where nothing has been stored of the organization of late, the boundary is that of the
// last look, while it is fresh, and else set from it; and while the statement runs, it is looked again. A fresh boundary can be
// shared if no record was counted since. One that was set can if besides no insert that began before is in flight: all that was stored until
// then, or can be with an earlier stamp, was there at the last look. Else the statement is run again.
func (e *Engine) firstPage(ctx context.Context, r Request, in compile.Input) (*Result, error) {
	of := recordsOf{in.Organization, in.Query.Model.Source.Table}
	last, known := e.looks.get(of)
	calm := known && last.counters.Quiet() >= e.idleFrom
	fresh := calm && last.fresh()
	switch {
	case fresh:
		in.AsOf = last.boundary()
	case calm:
		in.AsOf = last.now().Add(-behindNow).Truncate(time.Millisecond)
	default:
		if err := e.begin(ctx, &in); err != nil {
			return nil, err
		}
	}
	looking := make(chan error, 1)
	var seen look
	go func() {
		var err error
		if fresh {
			seen = last
			seen.counters, err = snapshot.ReadInsertCounter(ctx, e.conn, of.organization, of.source)
		} else {
			seen, err = e.look(ctx, of)
		}
		looking <- err
	}()
	given := in
	result, err := e.attempt(ctx, r, &given)
	if err = errors.Join(err, <-looking); err != nil || !calm {
		return result, err
	}
	if !seen.oldest.After(in.AsOf) { // somebody is storing rows, of whatever organization
		waited, err := snapshot.AwaitInserts(ctx, e.conn, in.AsOf)
		if err != nil {
			return nil, err
		}
		if waited.Before(in.AsOf) {
			in.AsOf = waited
			r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
			return e.attempt(ctx, r, &in)
		}
		if seen, err = e.look(ctx, of); err != nil {
			return nil, err
		}
	}
	if seen.counters.Records == last.counters.Records {
		return result, nil
	}
	if err := e.begin(ctx, &in); err != nil {
		return nil, err
	}
	r.QueryID = uuid.New()
	return e.attempt(ctx, r, &in)
}

// look looks what is being stored, and remembers it.
func (e *Engine) look(ctx context.Context, of recordsOf) (seen look, err error) {
	now, oldest, _, err := snapshot.InFlight(ctx, e.conn)
	if err != nil {
		return seen, err
	}
	counters, err := snapshot.ReadInsertCounter(ctx, e.conn, of.organization, of.source)
	if err != nil {
		return seen, err
	}
	seen = look{oldest, counters, time.Now(), e.changes.counted(now, oldest)}
	if seen.whole {
		e.looks.put(of, seen)
	}
	return seen, nil
}
