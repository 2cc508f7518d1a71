// Package olap is the one door for queries: it answers a valid query for one organization.
package olap

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// An Engine answers queries from one store. It is safe for concurrent use.
type Engine struct {
	conn   driver.Conn
	sealer cursor.Sealer
	single memory
}

// NewEngine returns an Engine that reads through conn, in whose database the migrations have been
// applied, and signs cursors with cursorSecret, which all servers of a deployment share.
func NewEngine(conn driver.Conn, cursorSecret []byte) *Engine {
	return &Engine{conn: conn, sealer: cursor.NewSealer(cursorSecret)}
}

// A Request is a query on behalf of an organization.
type Request struct {
	OrganizationID schema.OrganizationID
	Query          query.Query

	// QueryID names the execution in the answer and in ClickHouse. RequestID and KeyID only go
	// into ClickHouse's log.
	QueryID   uuid.UUID
	RequestID string
	KeyID     string
}

// Run answers a request. The error is a *query.Error for a cursor that does not fit; anything else
// is a failure of the store or the end of ctx.
func (e *Engine) Run(ctx context.Context, r Request) (*Result, error) {
	in := compile.Input{Organization: r.OrganizationID, Query: r.Query}
	if err := e.begin(ctx, &in); err != nil {
		return nil, err
	}
	result, err := e.execute(ctx, r, in)
	if err != nil || r.Query.Cursor != "" {
		return result, err
	}
	single := result.RowCount() > 0 && result.cursor == ""
	e.single.note(r.OrganizationID, r.Query.Canonical(), single)
	if single || !in.AsOf.IsZero() {
		return result, nil
	}
	// A page that another one may follow needs a boundary that both can share, and an answer without rows tells none.
	if err := e.settle(ctx, &in); err != nil {
		return nil, err
	}
	r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
	return e.execute(ctx, r, in)
}

// begin sets the inclusion boundary and the row to continue behind: the cursor's, or those of a first page. It leaves the
// boundary to the statement's own clock, which saves a round trip, when the answer should be a single page.
func (e *Engine) begin(ctx context.Context, in *compile.Input) error {
	if in.Query.Cursor != "" {
		c, err := e.sealer.Open(in.Organization, in.Query.Canonical(), in.Query.Cursor)
		if err != nil || len(c.After) != len(in.Query.Dimensions) {
			return &query.Error{Code: query.InvalidCursor, Param: "cursor", Reason: "invalid, or of another organization or query"}
		}
		in.AsOf, in.After = c.AsOf, c.After
		return nil
	}
	if in.Query.Totals() || e.single.expected(in.Organization, in.Query.Canonical()) {
		return nil
	}
	return e.settle(ctx, in)
}

// settle sets a boundary that all pages of an answer can share.
func (e *Engine) settle(ctx context.Context, in *compile.Input) error {
	boundary, err := exec.Settled(ctx, e.conn)
	in.AsOf = boundary.AsOf
	return err
}

// execute runs the input's statement and makes an answer of its rows.
func (e *Engine) execute(ctx context.Context, r Request, in compile.Input) (*Result, error) {
	statement := compile.Compile(in)
	table, err := exec.Run(ctx, e.conn, statement, r.QueryID, comment(r))
	if err != nil {
		return nil, err
	}
	result := &Result{request: r, asOf: in.AsOf, table: table}
	if statement.OwnClock {
		result.asOf = table.AsOf
	}
	if further := result.cut(); further && r.Query.Pages() {
		result.cursor = e.sealer.Seal(r.OrganizationID, r.Query.Canonical(), cursor.Cursor{
			AsOf:  result.asOf,
			After: result.lastKeys(statement.Order),
		})
	}
	return result, nil
}

// comment is what ClickHouse's own log says about the execution.
func comment(r Request) string {
	text, err := json.Marshal(struct {
		RequestID      string                `json:"request_id"`
		OrganizationID schema.OrganizationID `json:"organization_id"`
		KeyID          string                `json:"key_id"`
	}{r.RequestID, r.OrganizationID, r.KeyID})
	if err != nil {
		return fmt.Sprintf("comment: %v", err)
	}
	return string(text)
}
