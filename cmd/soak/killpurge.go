package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A purgePrey is `runlens purge` of one person a cycle, while a server runs that refreshes the rollup.
type purgePrey struct {
	store   *killStore
	records killRecords
	server  *process.Server
	cycle   string // whose organization has the person
	found   []finding
}

func newPurgePrey(store *killStore) (prey, error) {
	return &purgePrey{store: store, records: killRecords{sent: versions{}}}, nil
}

// purged is the person that is purged from the organization of each cycle. Forty people have as many records there.
const purged = "p7@example.com"

func (p *purgePrey) points() (all []trap.Point) {
	k, targets := p.store, p.store.folders[schema.TablePurgeTargets]
	for n := range 3 { // the claim, and damage of two sources
		all = append(all, k.atPart(schema.TableRollupLog, n+1)...)
	}
	all = append(all, k.atAnswer(schema.TableRollupLog, 1)...)
	all = append(all, k.atMutation(schema.TablePurgeTargets, 1)...)
	for n := range 3 {
		all = append(all, k.atPart(schema.TablePurgeTargets, n+1)...)
	}
	for _, table := range append(schema.Derived(), schema.TableAttributions) {
		all = append(all, k.atMutation(table, 1)...)
	}
	for n := range 3 {
		all = append(all, k.atMutation(schema.TableRuns, n+1)...)
	}
	all = append(all, atRename(schema.TablePurgeTargets, targets, "emptied part", "tmp_empty_", 1)...)
	all = append(all, atRename(schema.TablePurgeTargets, targets, "deleted part", `[^/"]+", ".*delete_tmp_`, 1)...)
	all = append(all, k.atPart(schema.TableRollupLog, 4)...) // what ends cached answers
	all = append(all, k.atMutation(schema.TableRollupLog, 1)...)
	all = append(all, k.atPart(schema.TableRollupLog, 5)...) // the end of the claim
	return append(all, k.atPart("audit_log", 1)...)
}

// prepare stores the organization of the cycle and waits until it is in the rollup.
func (p *purgePrey) prepare(ctx context.Context, cycle string) error {
	if p.server == nil {
		var err error
		if p.server, err = p.store.serve(); err != nil {
			return err
		}
	}
	p.cycle = cycle
	file := filepath.Join(p.store.dir, cycle+".ndjson")
	if err := p.records.write(file, cycle, 800, 800, 0); err != nil {
		return err
	}
	if err := p.store.run(ctx, "ingest", file); err != nil {
		return err
	}
	server, err := p.store.open(ctx)
	if err != nil {
		return err
	}
	now, err := snapshot.Now(ctx, server.Conn())
	if err != nil {
		return err
	}
	for {
		state, err := snapshot.ReadLog(ctx, server.Conn())
		if err != nil || len(state.Damaged) == 0 && state.Until.After(now) {
			return err
		}
		if !harness.Pause(ctx, refreshPoll) {
			return ctx.Err()
		}
	}
}

func (p *purgePrey) strike(ctx context.Context, set *trap.Trap) (bool, error) {
	hit, err := p.store.strikeCommand(ctx, set, "purge", "--org", p.cycle, "--person", purged, "--yes")
	if err != nil {
		return hit, err
	}
	return hit, p.checkPerson(ctx)
}

// checkPerson finds what is left of the person, and takes note of the records that have to be gone.
func (p *purgePrey) checkPerson(ctx context.Context) error {
	server, err := p.store.open(ctx)
	if err != nil {
		return err
	}
	p.records.forget(purged)
	conn := server.Conn()
	of := func(column string) string {
		return "tupleElement(" + column + ", 'initiator_identifier') = '" + purged + "'"
	}
	initiator := strings.ReplaceAll(schema.InitiatorOfSQL, "?", "'"+purged+"'")
	for table, condition := range map[string]string{
		schema.TableRuns:          of("record"),
		schema.TableAttributions:  "user_identifier = '" + purged + "'",
		schema.TableInitiatorKeys: "initiator_identifier = '" + purged + "'",
		schema.RollupOf(schema.TableRuns).Table: fmt.Sprintf("bitShiftRight(initiator_key, %d) = %s",
			schema.InitiatorKeyShift, initiator),
	} {
		var left uint64
		sql := "SELECT count() FROM " + table + " WHERE organization_id = '" + p.cycle + "' AND " + condition
		if err := conn.QueryRow(ctx, sql).Scan(&left); err != nil {
			return fmt.Errorf("search for the person in %s: %w", table, err)
		}
		if left > 0 {
			p.found = append(p.found, finding{cycle: p.cycle, differing: 1,
				what: fmt.Sprintf("%d rows of %s are left of the person", left, table)})
		}
	}
	return nil
}

func (p *purgePrey) check(ctx context.Context) ([]finding, error) {
	found, err := p.store.checkAll(ctx, p.records.sent)
	return append(found, p.found...), err
}

func (p *purgePrey) close() {
	if p.server != nil {
		p.server.Stop()
	}
}
