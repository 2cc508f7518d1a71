// Package orgs says which organizations a store has.
package orgs

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// An Organization is what the store has of one.
type Organization struct {
	ID      schema.OrganizationID
	Agents  uint64
	Runs    uint64     // of every kind, each once
	LastRun *time.Time // when the latest run was created; nil without runs
	Keys    uint64     // that are valid
}

// List returns the organizations that have agents, runs or keys, in the order of their names. It reads all runs.
func List(ctx context.Context, conn driver.Conn) ([]Organization, error) {
	of := sql.AllOrganizations("all organizations of a store are listed")
	counts := func(table, columns string) sql.Select {
		return sql.Select{Columns: []string{"organization_id", columns}, From: of(table).Final(true),
			Group: []string{"organization_id"}}
	}
	list := sql.Select{
		Columns: []string{"organization_id", "sum(a)", "sum(r)", "max(l)", "sum(k)"},
		From: sql.Query(sql.Union{
			counts(schema.TableAgents, "count() AS a, 0 AS r, CAST(NULL, 'Nullable(DateTime64(3, ''UTC''))') AS l, 0 AS k"),
			counts(schema.TableRuns, "0, count(), CAST(max(created_at), 'Nullable(DateTime64(3, ''UTC''))'), 0"),
			counts(schema.TableAPIKeys,
				"0, 0, NULL, countIf(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now64(3)))"),
		}),
		Group: []string{"organization_id"}, Order: []string{"organization_id"},
	}
	rows, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(schema.ReadSettings)), list.String())
	if err != nil {
		return nil, fmt.Errorf("orgs: list: %w", err)
	}
	defer rows.Close()
	var all []Organization
	for rows.Next() {
		var one Organization
		var id string
		if err := rows.Scan(&id, &one.Agents, &one.Runs, &one.LastRun, &one.Keys); err != nil {
			return nil, fmt.Errorf("orgs: list: %w", err)
		}
		one.ID = schema.OrganizationID(id)
		all = append(all, one)
	}
	return all, rows.Err()
}

// HasRuns reports whether the store has runs of an organization.
func HasRuns(ctx context.Context, conn driver.Conn, organization schema.OrganizationID) (bool, error) {
	first := sql.Select{Columns: []string{"organization_id"}, From: sql.Table(schema.TableRuns), Limit: "1"}
	var found uint64
	err := conn.QueryRow(ctx, sql.Select{Columns: []string{"count()"}, From: sql.Query(first)}.String(),
		clickhouse.Named("organization", string(organization))).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("orgs: %w", err)
	}
	return found > 0, nil
}
