package olap

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

const (
	// maxCalm is of how many organizations and sources it is remembered what the last look saw: a few MiB.
	maxCalm = 10_000
	// calmAge bounds how long that is remembered.
	calmAge = time.Hour
	// headStart is what a statement has to set its boundary before anybody looks what is being stored.
	headStart = 2 * time.Millisecond
)

// A look tells what is being stored. Nothing with a stamp before oldest can appear any more; and nothing of the organization appeared
// since an earlier look whose count is the same. The inserts in flight are read first: one that is not among them, and
// ended since the earlier look, is counted (moment.Standing).
type look struct {
	oldest time.Time // begin of the oldest insert in flight
	stored moment.Count
	whole  bool // every insert that is over is counted
}

// A calm is what the last look of an organization and source saw.
type calm struct {
	stored moment.Count
	lasts  bool // the look before it saw the same, or there was none
}

// firstPage answers with a page that another one may follow: they share its boundary. To read one that they can (moment.Settled)
// takes a third of the time of a small statement. So while nothing is being stored of the organization the statement sets its own,
// and a look meanwhile tells whether rows stored at or before it may have appeared since.
func (e *Engine) firstPage(ctx context.Context, r Request, in compile.Input) (*Result, error) {
	of := recordsOf{in.Organization, in.Query.Model.Source.Table}
	last, known := e.calm.get(of)
	own := known && last.lasts
	if !own {
		if err := e.begin(ctx, &in); err != nil {
			return nil, err
		}
	}
	looking := make(chan error, 1)
	var seen look
	go func() {
		err := moment.Pause(ctx, headStart)
		if err == nil {
			seen, err = e.look(ctx, of)
		}
		looking <- err
	}()
	given := in
	result, err := e.attempt(ctx, r, &given)
	lookErr := <-looking
	if err != nil || lookErr != nil {
		return nil, errors.Join(err, lookErr)
	}
	if seen.whole {
		e.calm.put(of, calm{seen.stored, !known || seen.stored == last.stored})
	}
	if !own {
		return result, nil
	}
	if result.asOf.IsZero() { // an answer without rows tells none
		result.asOf = seen.oldest.Add(-time.Millisecond)
	}
	in.AsOf = result.asOf
	if !seen.oldest.After(in.AsOf) {
		// Somebody is storing rows, of whatever organization, or the look was too early.
		if in.AsOf, err = moment.SettledAt(ctx, e.conn, in.AsOf); err != nil {
			return nil, err
		}
		if seen, err = e.look(ctx, of); err != nil {
			return nil, err
		}
	}
	if in.AsOf.Equal(result.asOf) && seen.stored == last.stored {
		return result, nil
	}
	r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
	return e.attempt(ctx, r, &in)
}

// look looks what is being stored.
func (e *Engine) look(ctx context.Context, of recordsOf) (seen look, err error) {
	now, oldest, _, err := moment.InFlight(ctx, e.conn)
	if err != nil {
		return seen, err
	}
	standing, err := moment.ReadStanding(ctx, e.conn, of.organization, schema.SettledOf(of.source))
	return look{oldest, standing.Records, e.changes.counted(now, oldest)}, err
}
