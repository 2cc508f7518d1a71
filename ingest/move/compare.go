package move

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A sum is of all rows of a table.
type sum struct {
	Rows, Hash uint64
	Newest     time.Time // the greatest stamp
}

// differs returns a table of which the cells have different rows; empty for none.
func (m *mover) differs(ctx context.Context, organizations []string) (string, error) {
	for _, t := range slices.Concat(records, lists) {
		if !t.compared {
			continue
		}
		columns, err := m.columns(ctx, t)
		if err != nil {
			return "", err
		}
		for some := range slices.Chunk(organizations, chunk) {
			left, err := sumOf(ctx, m.from.conn, t, columns, some)
			if err != nil {
				return "", err
			}
			right, err := sumOf(ctx, m.to.conn, t, columns, some)
			if err != nil {
				return "", err
			}
			if left.Newest.After(m.stamped) {
				m.stamped = left.Newest
			}
			if left != right {
				m.o.Logger.Info("the cells differ", "table", t.name, "from", left, "to", right)
				return t.name, nil
			}
		}
	}
	return "", nil
}

func sumOf(ctx context.Context, conn driver.Conn, t table, columns, organizations []string) (s sum, err error) {
	stamp := cmp.Or(t.storedAt, "toDateTime64(0, 3, 'UTC')")
	rows := t.rowsOf("count()", "sum(cityHash64(tuple("+strings.Join(columns, ", ")+")))", "max("+stamp+")")
	rows.From = rows.From.Final(true)
	reading := clickhouse.Context(ctx, clickhouse.WithSettings(maps.Clone(schema.ReadSettings)))
	err = conn.QueryRow(reading, rows.String(), clickhouse.Named("organizations", organizations)).
		Scan(&s.Rows, &s.Hash, &s.Newest)
	if err != nil {
		err = fmt.Errorf("compare %s: %w", t.name, err)
	}
	return s, err
}

// counted says how many records of organizations were ever stored in the old cell, and when the last ones were.
func (m *mover) counted(ctx context.Context, organizations []string) (rows uint64, newest time.Time, err error) {
	for some := range slices.Chunk(organizations, chunk) {
		count := sql.Select{
			Columns: []string{"sum(rows)", "max(last_stored_at)"}, From: ofAll(schema.TableInsertCounters),
			Where: []string{ofOrganizations, "source IN ('runs', 'attributions', 'agents')"},
		}
		var n uint64
		var last time.Time
		err := m.from.conn.QueryRow(ctx, count.String(), clickhouse.Named("organizations", some)).Scan(&n, &last)
		if err != nil {
			return 0, newest, fmt.Errorf("cell %s: count what was stored: %w", m.from.name, err)
		}
		if rows += n; last.After(newest) {
			newest = last
		}
	}
	return rows, newest, nil
}

// owned are the tables in which an organization may have rows.
var owned = []string{schema.TableAPIKeys, schema.TableAgents, schema.TableRuns, schema.TableAttributions,
	schema.TableConflicts, schema.TableInsertCounters, schema.TableUsageLog, schema.TableAuditLog,
	schema.TableReplacements}

// organizations are those of the subject of which a cell has anything, in order.
func (m *mover) organizations(ctx context.Context, s *side) (names []string, err error) {
	told, err := cells.Read(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	of := "cityHash64(organization_id) % " + fmt.Sprint(cells.Slots) + " = {slot:UInt16}" +
		" AND NOT has({pinned:Array(String)}, toString(organization_id))"
	args := []any{clickhouse.Named("slot", uint16(m.subject.Slot())),
		clickhouse.Named("pinned", append(told.Pins(m.subject.Slot()), ""))}
	if organization := m.subject.Organization(); organization != "" {
		of, args = "organization_id = {organization:String}", []any{clickhouse.Named("organization", string(organization))}
	}
	var all sql.Union
	for _, table := range owned {
		all = append(all, sql.Select{
			Distinct: true, Columns: []string{"toString(organization_id) AS organization"}, From: ofAll(table),
			Where: []string{of},
		})
	}
	list := sql.Select{Columns: []string{"arraySort(groupUniqArray(organization))"}, From: sql.Query(all)}
	if err := s.conn.QueryRow(ctx, list.String(), args...).Scan(&names); err != nil {
		return nil, fmt.Errorf("cell %s: list the organizations: %w", s.name, err)
	}
	return names, nil
}
