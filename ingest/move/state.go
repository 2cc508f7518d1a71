package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// ErrTaken is returned when another command has taken the move over.
var ErrTaken = errors.New("another command has taken this move over")

const poll = 50 * time.Millisecond

var ofAll = sql.AllOrganizations("a move is of several of them")

// queryPrefix begins the query_id of every statement of a move that changes something: such an insert stores nothing
// that an inclusion boundary has to wait for.
const queryPrefix = snapshot.RefreshQueryPrefix + "move-"

// changing is a context for such a statement.
func changing(ctx context.Context, more ...clickhouse.QueryOption) context.Context {
	id := queryPrefix + strings.TrimPrefix(snapshot.RefreshQueryID(), snapshot.RefreshQueryPrefix)
	settings := clickhouse.Settings{"async_insert": 0, "max_partitions_per_insert_block": 0, "optimize_on_insert": 0}
	return clickhouse.Context(ctx, append(more, clickhouse.WithQueryID(id), clickhouse.WithSettings(settings))...)
}

// A side is one of the two cells.
type side struct {
	name string
	conn driver.Conn
	at   cells.Place // its own row of the subject, as it was read or written last
}

// read reads the row again.
func (s *side) read(ctx context.Context, subject cells.Subject) (told cells.Told, err error) {
	if told, err = cells.Read(ctx, s.conn); err == nil {
		s.at = told.Own(subject)
	}
	return told, err
}

// become replaces the row, if it is still the newest. The error is ErrTaken if it is not.
func (s *side) become(ctx context.Context, subject cells.Subject, next cells.Place) error {
	return s.becomeWhile(ctx, subject, next, subject, s.at.Revision)
}

// becomeWhile is become, if the newest row of another subject has a revision too.
func (s *side) becomeWhile(
	ctx context.Context, subject cells.Subject, next cells.Place, other cells.Subject, revision uint64,
) error {
	newest := func(parameter string) string {
		return sql.In(sql.Select{
			Columns: []string{"max(revision)"}, From: ofAll(schema.TablePlacement),
			Where: []string{"subject = {" + parameter + ":String}"},
		})
	}
	err := s.conn.Exec(changing(ctx), "INSERT INTO "+schema.TablePlacement+
		" (subject, cell, revision, state, destination, mover) SELECT {subject:String}, {cell:String}, {revision:UInt64},"+
		" {state:String}, {to:String}, {mover:UInt64} WHERE"+newest("subject")+" = {before:UInt64} AND"+newest("other")+
		" = {while:UInt64}",
		clickhouse.Named("subject", subject.String()), clickhouse.Named("cell", next.Cell),
		clickhouse.Named("revision", next.Revision), clickhouse.Named("state", string(next.State)),
		clickhouse.Named("to", next.To), clickhouse.Named("mover", next.Mover), clickhouse.Named("before", s.at.Revision),
		clickhouse.Named("other", other.String()), clickhouse.Named("while", revision))
	if err != nil {
		return fmt.Errorf("cell %s: tell it that it is %s: %w", s.name, next.State, err)
	}
	if err := snapshot.AwaitStatements(ctx, s.conn, queryPrefix); err != nil {
		return fmt.Errorf("cell %s: %w", s.name, err)
	}
	if _, err := s.read(ctx, subject); err != nil {
		return err
	}
	if s.at.Mover != next.Mover || s.at.Revision != next.Revision {
		return ErrTaken
	}
	return nil
}

// renew writes the row again. What was sent before on condition of it, and comes late, changes nothing from then on.
func (m *mover) renew(ctx context.Context, s *side) error {
	return s.become(ctx, m.subject, m.place(s.at.Cell, s.at.State))
}

// fence is the condition that the row is still what the mover wrote last. It names no organization: ClickHouse keeps
// the texts of some statements.
func (s *side) fence() string {
	last := sql.Select{
		Columns: []string{"(argMax(mover, revision), max(revision)) AS last"}, From: ofAll(schema.TablePlacement),
		Group: []string{"subject"},
	}
	mine := sql.Select{
		Columns: []string{"count()"}, From: sql.Query(last),
		Where: []string{fmt.Sprintf("last = (toUInt64(%d), toUInt64(%d))", s.at.Mover, s.at.Revision)},
	}
	return sql.In(mine) + " = 1"
}

// check returns ErrTaken if the row is not what the mover wrote last.
func (s *side) check(ctx context.Context) error {
	var valid bool
	if err := s.conn.QueryRow(ctx, "SELECT toBool("+s.fence()+")").Scan(&valid); err != nil {
		return fmt.Errorf("cell %s: read where organizations are: %w", s.name, err)
	}
	if !valid {
		return ErrTaken
	}
	return nil
}
