package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// ErrNothingToCheck says that a check found nothing to compare, which proves nothing (contract 28).
var ErrNothingToCheck = errors.New("nothing was compared")

// ErrNoRecords is ErrNothingToCheck of a store that has nothing to refresh, such as a cell without organizations.
var ErrNoRecords = fmt.Errorf("%w: there is no record of runs or attributions", ErrNothingToCheck)

var (
	errUnrefreshed = fmt.Errorf("%w: no record of runs or attributions has been refreshed yet", ErrNothingToCheck)
	errAbandoned   = fmt.Errorf("%w: a process died while it changed the rollup; a running server builds it again, and "+
		"so does 'runlens rollup rebuild'", ErrNothingToCheck)
)

// Check compares the whole rollup with its sources, section by section. Queries use it meanwhile, and refreshers wait
// only while a difference is confirmed. The error is ErrNothingToCheck if there is no section or no refresh yet, or if
// a process of the first release died while it changed the rollup (abandonedLease).
func Check(ctx context.Context, conn driver.Conn) (found []Difference, err error) {
	return CheckWith(ctx, conn, func(uint64) {})
}

// CheckWith is Check that says after each section about how many records were compared so far.
func CheckWith(ctx context.Context, conn driver.Conn, progress func(records uint64)) (found []Difference, err error) {
	w, err := newWalk(ctx, conn)
	if err != nil {
		return nil, err
	}
	if len(w.pending) == 0 {
		return nil, ErrNoRecords
	}
	if state, err := snapshot.ReadLog(ctx, conn); err != nil || state.Number == 0 {
		return nil, cmp.Or(err, errUnrefreshed)
	}
	s := New(conn, slog.New(slog.DiscardHandler), Margin)
	var records uint64
	for first := true; ; first = false {
		next, err := w.next(ctx)
		if next == nil && err == nil && first {
			return nil, ErrNoRecords
		}
		if err != nil {
			return found, err
		}
		if next == nil {
			uncounted, err := uncounted(ctx, conn)
			return append(found, uncounted...), err
		}
		differences, err := s.checkPatiently(ctx, *next)
		if err != nil {
			return nil, err
		}
		found = append(found, differences...)
		records += next.records
		progress(records)
	}
}

// uncounted are the attribution records none of whose clocks counts, which a rebuild repairs.
func uncounted(ctx context.Context, conn driver.Conn) (found []Difference, err error) {
	counted := sql.Select{
		Columns: []string{"toString(organization_id) AS organization", "toInt64(count()) AS records"},
		From:    sql.Query(schema.WronglySuperseded(compared)),
		Group:   []string{"organization_id"}, Order: []string{"organization_id"},
	}
	if err := conn.Select(ctx, &found, counted.String()); err != nil {
		return nil, fmt.Errorf("rollup: look for records that do not count: %w", err)
	}
	for i := range found {
		found[i].Table = schema.TableConflicts
	}
	return found, nil
}

// checkPatiently waits for its turn.
func (s *Refresher) checkPatiently(ctx context.Context, of section) (found []Difference, err error) {
	err = patiently(ctx, func() error {
		var under *claim
		var err error
		if found, under, err = s.confirm(ctx, of, refreshedRecords); under != nil {
			err = under.end(ctx)
		}
		return err
	})
	return found, err
}

// claimPatience is how long a check waits for the batches of refreshers.
const claimPatience = 10 * time.Second

// awaitClaim waits for its turn and takes a claim. The error is errClaimed or ErrLost where others do not let it.
func (s *Refresher) awaitClaim(ctx context.Context) (*claim, error) {
	for began := time.Now(); ; {
		state, err := snapshot.ReadLog(ctx, s.conn)
		if err != nil {
			return nil, err
		}
		if state.Leased {
			return nil, errClaimed
		}
		c, err := takeClaim(ctx, s.conn, state, s.name)
		if !errors.Is(err, errClaimed) || time.Since(began) > claimPatience {
			return c, err
		}
		if err := snapshot.Pause(ctx, claimPoll); err != nil {
			return nil, err
		}
	}
}

// confirm compares a section. Where it differs twice, it compares once more under a claim, which comes with the
// differences and is to be ended. The error is errClaimed or ErrLost where others change the rollup, and errAbandoned
// where nobody does any more. Differences come with an error, and without a claim, where none could be taken.
//
// What differs under a claim is damage:
//
//  1. Nobody changes the rollup, the names or the watermark W while the claim is valid: what others send carries a
//     fence that the claim made false, what they sent before has ended. The claim is checked after the comparison.
//  2. Every record none of whose rows was stored after W is in the rollup as it is in the source: that is what the
//     entry says that set W. All other records are left out.
//  3. The source may be read later than the rollup, but each in one snapshot. A row that appears in between was stored
//     after W: those stored until W had all been seen when W was set. So its record is left out.
//  4. Merges change no result. Of the rows with equal keys a merge takes out pairs of 1 and -1; those that refreshes
//     write alternate, so that no two of one sign are left to be merged into one. Sums of projections are compared
//     multiplied with hashes of their groups, whichever groups, rows and parts there are, also groups of zeros.
//  5. A projection that a part does not have is not compared.
//  6. Names are written before the rows that need them.
//
// That is of refreshedRecords. Of allRecords 3 does not hold: what differs is made right again, and may be right.
func (s *Refresher) confirm(
	ctx context.Context, of section, records chosen,
) (found []Difference, under *claim, err error) {
	for range 2 {
		state, err := snapshot.ReadLog(ctx, s.conn)
		if err != nil || state.Number == 0 { // nobody has refreshed yet
			return nil, nil, err
		}
		if abandonedLease(state) { // there may be no server that builds the rollup again
			return nil, nil, errAbandoned
		}
		if state.Leased || state.Changing() {
			return nil, nil, errClaimed
		}
		if found, err = compare(ctx, s.conn, of, records, state.Until, ""); err != nil || len(found) == 0 {
			return nil, nil, err
		}
	}
	if under, err = s.awaitClaim(ctx); err != nil {
		return found, nil, err
	}
	if found, err = compare(ctx, s.conn, of, records, under.until, snapshot.RefreshQueryID()); err == nil {
		err = under.check(ctx)
	}
	if err != nil || len(found) == 0 {
		return nil, nil, errors.Join(err, under.end(ctx))
	}
	return found, under, nil
}
