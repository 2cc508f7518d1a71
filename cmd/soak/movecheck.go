package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// movedTables are those in which an organization has rows, but for the usage log: what a server noted late stays in the
// old cell (package move, 10).
var movedTables = append(schema.Derived(), schema.TableAgents, schema.TableRuns, schema.TableAttributions,
	schema.TableAPIKeys, schema.TableInsertCounters, schema.TableAuditLog)

// check compares each cell with what must be there when everything has ended.
func (r *relocation) check(ctx context.Context) error {
	want, err := r.worker.readSource(ctx, nil)
	if err != nil {
		return err
	}
	for _, o := range r.organizations {
		maps.Copy(want, o.records.sent)
	}
	cellOf := map[string]string{}
	for _, o := range r.organizations {
		is, err := r.cellOf(ctx, o.name)
		if err != nil {
			return err
		}
		if is != o.cell {
			r.found(finding{cycle: o.name, differing: 1, what: fmt.Sprintf("is in %s, and was moved to %s", is, o.cell)})
		}
		cellOf[o.name] = is
	}
	for _, name := range movedCells {
		if err := r.checkCell(ctx, name, cellOf, want); err != nil {
			return fmt.Errorf("cell %s: %w", name, err)
		}
	}
	return nil
}

func (r *relocation) found(f finding) { r.tallies.find("moves", "", f) }

// checkCell compares one cell, once the worker has copied everything.
func (r *relocation) checkCell(ctx context.Context, name string, cellOf map[string]string, all versions) error {
	want := versions{}
	for id, version := range all {
		if cellOf[id.organization] == name {
			want[id] = version
		}
	}
	cell := r.cells[name]
	var found []finding
	var err error
	harness.Poll(ctx, copyPatience, time.Second, func() bool {
		found = nil
		server, openErr := cell.open(ctx)
		if err = openErr; err != nil {
			return false
		}
		var compared []finding
		compared, err = compareStored(ctx, server.Conn(), want)
		for _, f := range compared {
			if cellOf[f.cycle] == name {
				found = append(found, f)
			}
		}
		return err == nil && len(found) == 0
	})
	if err != nil {
		return err
	}
	if err := r.checkAbsent(ctx, name, cellOf); err != nil {
		return err
	}
	counted, err := cell.countRollup(ctx)
	if err != nil {
		return err
	}
	for _, f := range append(found, counted...) {
		r.found(f)
	}
	if len(want) == 0 {
		return nil
	}
	server, err := cell.open(ctx)
	if err != nil {
		return err
	}
	differences, err := rollup.Check(ctx, server.Conn())
	for _, d := range differences {
		r.found(finding{cycle: string(d.Organization), differing: 1, what: fmt.Sprintf("the rollup of %s: %+v", name, d)})
	}
	return err
}

// checkAbsent finds what a cell has of organizations that are in another one.
func (r *relocation) checkAbsent(ctx context.Context, name string, cellOf map[string]string) error {
	server, err := r.cells[name].open(ctx)
	if err != nil {
		return err
	}
	for _, o := range r.organizations {
		if cellOf[o.name] == name {
			continue
		}
		for _, table := range movedTables {
			var rows uint64
			sql := "SELECT count() FROM " + table + " WHERE organization_id = '" + o.name + "'"
			if err := server.Conn().QueryRow(ctx, sql).Scan(&rows); err != nil {
				return err
			}
			if rows > 0 {
				r.left.add("%d rows of %s in %s of %s", rows, o.name, table, name)
			}
		}
	}
	return nil
}
