// Package olap is the one door for queries: it answers a valid query for one organization.
package olap

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/flight"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// An Engine answers queries from one store. It is safe for concurrent use.
type Engine struct {
	conn    driver.Conn
	sealer  atomic.Pointer[cursor.Sealer]
	flights flight.Group[*Result]
	single  memory // those that were answered with a single page of rows
	slow    memory // those to which changes were given that did not hold for the slowThreshold they took

	sizes     sizes
	changes   changes
	missing   runsOutside
	looks     recent[recordsOf, look]
	largeFrom uint64
	idleFrom  time.Duration
	watch     time.Duration // between two looks whether a statement has its snapshots
}

// NewEngine returns an Engine that reads through conn, in whose database the migrations have been
// applied, and uses cursorSecrets for cursors, which all servers of a deployment share, as UseCursorSecrets does.
func NewEngine(conn driver.Conn, cursorSecrets ...[]byte) *Engine {
	e := &Engine{
		conn: conn, largeFrom: largeFrom, idleFrom: idleFrom, watch: watchEvery,
		sizes:   sizes{recent[recordsOf, size]{age: sizeAge, most: maxSizes}},
		changes: changes{recent: recent[recordsOf, known]{age: changesAge, most: maxChanged}, most: maxChanges, patient: stepPatience, margin: snapshot.ClockMargin},
		missing: runsOutside{recent: recent[rangeOf, missing]{age: outsideAge, most: maxOutsideOf}},
		looks:   recent[recordsOf, look]{age: lookAge, most: maxLooks},
	}
	e.UseCursorSecrets(cursorSecrets...)
	return e
}

// UseCursorSecrets replaces the secrets of cursors, at least one, also while queries run: the first one signs from now
// on, and what any of them signed is accepted.
func (e *Engine) UseCursorSecrets(secrets ...[]byte) {
	sealer := cursor.NewSealer(secrets...)
	e.sealer.Store(&sealer)
}

// A Request is a query on behalf of an organization.
type Request struct {
	OrganizationID schema.OrganizationID
	Query          query.Query

	// QueryID names the execution in the answer and in ClickHouse (but see Result.Execution). RequestID
	// and KeyID only go into ClickHouse's log.
	QueryID   uuid.UUID
	RequestID string
	KeyID     string

	strategy *Strategy // of its last statement; set by answer
}

// Run answers a request, alone or together with others of the same organization that ask the same: it may share an execution that
// began after the call. The error is a *query.Error for a cursor that does not fit; anything else
// is a failure of the store or the end of ctx.
func (e *Engine) Run(ctx context.Context, r Request) (*Result, error) {
	asked := string(r.OrganizationID) + "\x00" + string(r.Query.Canonical()) + "\x00" + r.Query.Cursor
	shared, err := e.flights.Do(ctx, asked, func(ctx context.Context) (*Result, error) { return e.answer(ctx, r) })
	if err != nil {
		return nil, err
	}
	result := *shared
	result.request = r
	return &result, nil
}

// answer runs the statement of a request. A statement whose answer should be a single page sets its own boundary, which saves
// a round trip.
func (e *Engine) answer(ctx context.Context, r Request) (result *Result, err error) {
	in := compile.Input{Organization: r.OrganizationID, Query: r.Query}
	r.strategy = &Strategy{Page: "single"}
	if r.Query.Cursor != "" {
		r.strategy.Page = "next"
		if err := e.resume(&in); err != nil {
			return nil, err
		}
		return e.attempt(ctx, r, &in)
	}
	paged := r.Query.Pages() && !e.single.expected(r.OrganizationID, r.Query.Canonical())
	if paged {
		r.strategy.Page = "first"
		result, err = e.firstPage(ctx, r, in)
	} else {
		result, err = e.attempt(ctx, r, &in)
	}
	if err != nil {
		return nil, err
	}
	e.single.note(r.OrganizationID, r.Query.Canonical(), result.RowCount() > 0 && result.cursor == "")
	if paged || result.cursor == "" && !result.asOf.IsZero() {
		return result, nil
	}
	// A page that another one may follow needs a boundary that both can share, and an answer without rows tells none.
	if r.Query.Pages() {
		r.strategy.Page = "first"
	}
	if err := e.begin(ctx, &in); err != nil {
		return nil, err
	}
	r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
	return e.attempt(ctx, r, &in)
}

// attempt answers within a boundary, or with one that the statement sets. Where an organization has many records, it helps the
// statement to what it would have to look for.
func (e *Engine) attempt(ctx context.Context, r Request, in *compile.Input) (*Result, error) {
	of := recordsOf{in.Organization, in.Query.Model.Source.Table}
	size, err := e.sizes.of(ctx, e.conn, of, e.largeFrom)
	in.Large, in.Conflicts = size.large, size.conflicts
	switch {
	case err != nil:
		return nil, err
	case size.large && compile.FitsRollup(in.Query):
		return e.addUp(ctx, r, in, of)
	case size.large && compile.JoinsRunWindow(in.Query):
		return e.sendRunsOutside(ctx, r, *in)
	}
	return e.execute(ctx, r, *in, nil)
}

// addUp adds up the records in the rollup of a large organization and what changed since. The changes are remembered from one
// statement to the next, and given to it: they hold while nothing is stored. What is refreshed must be the same until
// the statement has its snapshots, or records could be counted twice.
func (e *Engine) addUp(ctx context.Context, r Request, in *compile.Input, of recordsOf) (*Result, error) {
	last, err := e.changes.know(ctx, e.conn, of, e.slow.expected(r.OrganizationID, r.Query.Canonical()))
	if err != nil {
		return nil, err
	}
	if last.changes == nil {
		return e.lookUp(ctx, r, in)
	}
	if last.shared && compile.ByInitiatorKey(in.Query) {
		return e.readRows(ctx, r, *in, sharedKeys)
	}
	given := *in
	given.Watermark, given.Changes = last.until, compile.DeltaCached
	if last.changes.Len() == 0 {
		given.Changes = compile.DeltaNone
	}
	if given.AsOf.IsZero() {
		given.AsOf = last.counters.Now // what is stored from now on may be missing
	}
	executing, stop := context.WithCancel(ctx)
	defer stop()
	ended, began := e.watchMarks(ctx, r.QueryID, last.changes.Len(), last.counters.Marks, stop), time.Now()
	result, err := e.execute(executing, r, given, last.changes)
	held, atEnd, marksErr := ended()
	if ctx.Err() != nil {
		return nil, err
	}
	if marksErr != nil {
		return nil, errors.Join(err, marksErr)
	}
	e.slow.note(r.OrganizationID, r.Query.Canonical(), !held && atEnd && time.Since(began) >= slowThreshold)
	if held {
		return result, err
	}
	r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
	return e.lookUp(ctx, r, in)
}

// lookUp adds up records in the rollup with a statement that looks for changes itself.
func (e *Engine) lookUp(ctx context.Context, r Request, in *compile.Input) (*Result, error) {
	began := time.Now()
	before, err := snapshot.ReadRollupState(ctx, e.conn)
	if err != nil {
		return nil, err
	}
	in.Watermark = before.Boundary(in.Organization, in.Query.Model.Source.Table)
	in.Changes = compile.DeltaInline
	r.strategy.Refreshing = before.Refreshing
	result, err := e.execute(ctx, r, *in, nil)
	if errors.Is(err, exec.ErrSharedKeys) {
		r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
		return e.readRows(ctx, r, *in, sharedKeys)
	}
	if in.Watermark.IsZero() || time.Since(began) < snapshot.ValidFor || ctx.Err() != nil {
		return result, err
	}
	// So much later, records may have been taken out of the rollup, by a purge or to repair it.
	after, stateErr := snapshot.ReadRollupState(ctx, e.conn)
	if stateErr != nil {
		return nil, errors.Join(err, stateErr)
	}
	if after.Lease == before.Lease && after.LastDamage == before.LastDamage {
		return result, err
	}
	r.QueryID = uuid.New()
	return e.readRows(ctx, r, *in, rollupAltered)
}

// Why rows are read although the rollup has what was asked for.
const (
	sharedKeys    = "shared_initiator_keys" // one of them stands for two texts: rows tell those apart
	rollupAltered = "rollup_altered"        // the rollup was altered while the query ran
)

// readRows answers from the base tables, for a reason.
func (e *Engine) readRows(ctx context.Context, r Request, in compile.Input, reason string) (*Result, error) {
	in.Watermark = time.Time{}
	r.strategy.Reason = reason
	return e.execute(ctx, r, in, nil)
}

// begin sets the inclusion boundary of a first page, for a statement that does not set its own.
func (e *Engine) begin(ctx context.Context, in *compile.Input) error {
	read := snapshot.Now
	if in.Query.Pages() {
		read = snapshot.PageBoundary
	}
	boundary, err := read(ctx, e.conn)
	in.AsOf = boundary.AsOf
	return err
}

// resume sets the boundary and the row to continue behind: the cursor's.
func (e *Engine) resume(in *compile.Input) error {
	c, err := e.sealer.Load().Open(in.Organization, in.Query.Canonical(), in.Query.Cursor)
	if err != nil || len(c.After) != len(in.Query.Dimensions) {
		return &query.Error{Code: query.InvalidCursor, Param: "cursor", Reason: "invalid, or of another organization or query"}
	}
	in.AsOf, in.After = c.AsOf, c.After
	return nil
}

// execute runs the input's statement, to which changes are given if it needs them and the other tables that come with it, and makes an answer
// of its rows.
func (e *Engine) execute(ctx context.Context, r Request, in compile.Input, changes *snapshot.Changes, external ...*ext.Table) (*Result, error) {
	statement := compile.Compile(in)
	if len(statement.ChangeColumns) > 0 {
		given, err := changes.Table(statement.ChangeColumns, func(c snapshot.Change) bool { return in.AsksFor(c.Clock, c.StoredFirst, c.Sign < 0) })
		if err != nil {
			return nil, err
		}
		external = append(external, given)
	}
	*r.strategy = r.strategy.next(in, statement.Reads)
	table, err := exec.Run(ctx, e.conn, statement, r.QueryID, comment(r, r.strategy), external...)
	if err != nil {
		return nil, err
	}
	result := &Result{request: r, execution: r.QueryID, strategy: *r.strategy, asOf: in.AsOf, table: table}
	if statement.OwnClock {
		result.asOf = table.AsOf
	}
	if further := result.cut(); further && r.Query.Pages() {
		result.cursor = e.sealer.Load().Seal(r.OrganizationID, r.Query.Canonical(), cursor.Cursor{
			AsOf:  result.asOf,
			After: result.lastKeys(statement.Order),
		})
	}
	return result, nil
}
