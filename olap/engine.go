// Package olap is the entry point for queries: it answers a valid query for one organization.
package olap

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
)

const (
	// maxOnePage bounds what is cached of how many pages answers had, in bytes: some 8,000 questions.
	maxOnePage = 4 << 20
	onePageAge = time.Hour
	// attempts is how often a query is planned at most. The last plan assumes nothing.
	attempts = 3
)

// An Engine answers queries from one store. It is safe for concurrent use.
type Engine struct {
	conn    driver.Conn
	sealer  atomic.Pointer[cursor.Sealer]
	flights cache.Group[*Result]

	options plan.Options
	view    *snapshot.View
	onePage *cache.Cache[bool] // whether a query was answered with a single page of rows the last time
	deltas  *rollup.Deltas
	answers *answers // nil where no answers are cached
}

// NewEngine returns an Engine that reads through conn, in whose database the migrations have been applied, and uses
// cursorSecrets for cursors, which are the same for all servers of a deployment, as UseCursorSecrets does.
func NewEngine(conn driver.Conn, cursorSecrets ...[]byte) *Engine {
	view := snapshot.NewView(conn)
	e := &Engine{
		conn: conn, view: view, onePage: cache.New[bool](maxOnePage, onePageAge), deltas: rollup.NewDeltas(conn, view),
	}
	e.UseCursorSecrets(cursorSecrets...)
	return e
}

// Use switches options. Call it before the first query.
func (e *Engine) Use(options plan.Options) { e.options = options }

// UseCursorSecrets replaces the secrets of cursors, at least one, also while queries run: the first one signs from now
// on, and what any of them signed is accepted.
func (e *Engine) UseCursorSecrets(secrets ...[]byte) {
	sealer := cursor.NewSealer(secrets...)
	e.sealer.Store(&sealer)
}

// A Request is a query on behalf of who has an access.
type Request struct {
	Access schema.Access
	Query  query.Query // as asked

	// QueryID names the execution in the answer and in ClickHouse (but see Result.Execution). RequestID
	// and KeyID only go into ClickHouse's log.
	QueryID   uuid.UUID
	RequestID string
	KeyID     string
}

// A narrowed is a request whose query selects only what its access permits. Request.narrow makes it, and nothing else
// (TestOnlyNarrowNarrows). Whatever plans, executes, caches, shares or signs takes one, and no other query is at hand.
type narrowed struct {
	OrganizationID schema.OrganizationID
	Query          query.Query // narrowed; the one as asked is not kept
	restricted     bool

	QueryID          uuid.UUID
	RequestID, KeyID string
}

// narrow applies the access to the query, at the instant now. The error is a *query.Error.
func (r Request) narrow(now time.Time) (_ narrowed, err error) {
	q, restriction := r.Query, r.Access.Restriction()
	if restriction != nil {
		q, err = q.Narrow(restriction, now)
	}
	return narrowed{r.Access.Organization(), q, restriction != nil, r.QueryID, r.RequestID, r.KeyID}, err
}

// question is the same for equal queries of one organization under equal restrictions, whatever their cursors.
func (r narrowed) question() cache.Key {
	return cache.KeyOf([]byte(r.OrganizationID), r.Query.Canonical())
}

// page is the same for equal pages of equal questions.
func (r narrowed) page() cache.Key {
	question := r.question()
	return cache.KeyOf(question[:], []byte(r.Query.Cursor))
}

// Run answers a request. Equal requests of one organization under equal restrictions may share an execution, if it
// began after the call. The error is a *query.Error for a cursor that does not fit, or for what the access does not
// permit; anything else is a failure of the store or the end of ctx.
func (e *Engine) Run(ctx context.Context, request Request) (*Result, error) {
	r, err := request.narrow(time.Now())
	if err != nil {
		return nil, err
	}
	shared, err := e.flights.Do(ctx, r.page(), func(ctx context.Context) (*Result, error) {
		if e.answers == nil || e.answers.off.Load() {
			return e.answer(ctx, r, false)
		}
		return e.reuse(ctx, r)
	})
	if err != nil {
		return nil, err
	}
	result := *shared
	result.request = r
	return &result, nil
}

// answer gathers facts, plans, executes and validates what the plan assumed. Where an assumption was not valid, it
// plans again without it; the last attempt assumes nothing. conflicts says that records of the organization are known
// to have some.
func (e *Engine) answer(ctx context.Context, r narrowed, conflicts bool) (*Result, error) {
	a, err := e.newAttempt(r)
	if err != nil {
		return nil, err
	}
	a.conflicts = conflicts
	return e.attemptUntilValid(ctx, a)
}

// attemptUntilValid is answer from the first attempt on. Afterwards a is the last one.
func (e *Engine) attemptUntilValid(ctx context.Context, a *attempt) (*Result, error) {
	for a.number <= attempts {
		facts, err := e.facts(ctx, a)
		if err != nil {
			return nil, err
		}
		chosen := a.needs.Plan(facts)
		confirmed := e.confirm(ctx, a, chosen)
		result, failed := e.execute(ctx, a, chosen)
		shared, err := confirmed(result)
		switch {
		case errors.Is(failed, exec.ErrSharedKeys):
			a.again(plan.KeysDistinct)
		case errors.Is(failed, exec.ErrLogChanged):
			a.again(chosen.AssumesOfLog())
		case failed != nil || err != nil:
			return nil, errors.Join(failed, err)
		case !shared:
			a.again(chosen.Boundary.Assumes())
		default:
			e.noteOnePage(a, result)
			return result, nil
		}
	}
	return nil, errors.New("olap: a plan that assumes nothing was refuted")
}

// An attempt is one pass of the loop in answer, with what earlier passes found.
type attempt struct {
	narrowed
	needs   plan.Needs
	records snapshot.Records
	number  int // from 1
	refuted plan.Assumption

	conflicts bool // as in answer

	after   []value.Value // of the cursor
	asOf    time.Time     // likewise
	derived snapshot.Derived
	awaited time.Time // a boundary that pages can share, if an attempt waited for one
	delta   rollup.Cached

	began    time.Time
	executed executed // for Explain
}

// newAttempt opens the cursor, if there is one.
func (e *Engine) newAttempt(r narrowed) (*attempt, error) {
	a := &attempt{
		narrowed: r, needs: plan.Of(r.Query), number: 1, began: time.Now(),
		records: snapshot.Records{Organization: r.OrganizationID, Source: r.Query.Model.Source.Table},
	}
	if r.Query.Cursor == "" {
		return a, nil
	}
	c, err := e.sealer.Load().Open(r.OrganizationID, r.Query.Canonical(), r.Query.Cursor)
	if err != nil || len(c.After) != len(r.Query.Dimensions) {
		return nil, &query.Error{Code: query.InvalidCursor, Param: "cursor",
			Reason: "invalid, or of another organization, query or restriction"}
	}
	a.asOf, a.after = c.AsOf, c.After
	return a, nil
}

// execute runs the statement of a plan, with the tables that come with it, and makes an answer of its rows.
func (e *Engine) execute(ctx context.Context, a *attempt, p plan.Plan) (*Result, error) {
	in := compile.Input{Plan: p, Organization: a.OrganizationID, After: a.after}
	statement := compile.Compile(in)
	var external []*ext.Table
	if len(statement.DeltaColumns) > 0 {
		needed := func(row rollup.DeltaRow) bool { return in.DeltaRow(row.Clock, row.FirstStoredAt, row.Sign < 0) }
		sent, err := a.delta.Delta.Table(statement.DeltaColumns, needed)
		if err != nil {
			return nil, err
		}
		external = append(external, sent)
	}
	a.executed = executed{plan: p, statement: statement, external: external, facts: time.Since(a.began)}
	strategy := strategyOf(a, p)
	traced, end := trace.Statement(ctx, "statement")
	trace.Describe(traced, func() []attribute.KeyValue { return strategy.attributes(a.QueryID) })
	table, err := exec.Run(traced, e.conn, statement, a.QueryID, comment(a.narrowed, strategy), external...)
	end(err)
	var late *failure.LateError
	if errors.As(err, &late) && e.view.Silent() { // the time is nothing that the query took
		return nil, fmt.Errorf("%w: it answers nobody: %v", failure.ErrOverloaded, err)
	}
	if err != nil {
		return nil, err
	}
	if a.Query.MinPeople > 0 && a.Query.Totals() && len(table.Rows) == 0 {
		table.Rows = [][]value.Value{make([]value.Value, len(table.Columns))} // too few people: every metric is null
	}
	result := &Result{request: a.narrowed, execution: a.QueryID, strategy: strategy, asOf: p.AsOf, table: table,
		fromRollup: p.Assumes&plan.RollupUnaltered != 0}
	if statement.OwnClock {
		result.asOf = table.AsOf
		if table.AsOf.IsZero() { // no row has it; that of now is as good, since it is later
			if result.asOf, err = snapshot.Now(ctx, e.conn); err != nil {
				return nil, err
			}
		}
	}
	if further := result.cut(); further && a.Query.Pages() {
		result.cursor = e.sealer.Load().Seal(a.OrganizationID, a.Query.Canonical(), cursor.Cursor{
			AsOf:  result.asOf,
			After: result.lastKeys(statement.Order),
		})
	}
	return result, nil
}

// again makes it the next attempt. ClickHouse may not be done with the last one yet, so that it gets another query_id.
func (a *attempt) again(refuted plan.Assumption) {
	a.number++
	a.refuted |= refuted
	if a.number >= attempts {
		a.refuted = plan.Everything
	}
	a.QueryID, a.began = uuid.New(), time.Now()
	a.delta = rollup.Cached{}
}

// Follow takes overviews and snapshots again and again until ctx is done, so that no query has to wait for them, and
// looks for the views that cached answers rest on. One that fails is left to the next one, and to the queries.
func (e *Engine) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		e.follow(ctx)
		_ = snapshot.Pause(ctx, e.view.Pause())
	}
}

func (e *Engine) follow(ctx context.Context) {
	_ = e.view.Follow(ctx)
	if e.answers != nil {
		e.answers.follow(ctx)
	}
}
