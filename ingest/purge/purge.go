// Package purge takes records out of the store for good, in every table, part and projection: those
// of an organization, those of one person (a data-protection request), or single ones.
package purge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/settle"
	"github.com/runlens/runlens/schema"
)

// A Step is one table of a purge.
type Step struct {
	Table string `json:"table"`
	What  string `json:"what"` // WhatDeleted or WhatAnonymous
	Rows  int64  `json:"rows"` // stored rows, repeats and older versions included

	again  string // condition for the rows that are marked beforehand as just stored, so that they are settled again
	change string // what ALTER TABLE does
	where  string
	args   []any
}

// What happens to the rows of a step.
const (
	WhatDeleted   = "deleted"
	WhatAnonymous = "made anonymous"
)

const ofOrganization = "organization_id = {organization:String}"

// Organization returns the steps that take out everything of an organization, its API keys included.
func Organization(organization schema.OrganizationID) []Step {
	args := []any{clickhouse.Named("organization", string(organization))}
	keys := "key_id IN (SELECT key_id FROM " + schema.TableAPIKeys + " WHERE " + ofOrganization + ")"
	var steps []Step
	for _, table := range schema.Derived() {
		steps = append(steps, Step{What: WhatDeleted, Table: table, where: ofOrganization, args: args})
	}
	return append(steps, []Step{
		{What: WhatDeleted, Table: schema.TableAttributions, where: ofOrganization, args: args},
		{What: WhatDeleted, Table: schema.TableRuns, where: ofOrganization, args: args},
		{What: WhatDeleted, Table: schema.TableAgents, where: ofOrganization, args: args},
		{What: WhatDeleted, Table: schema.TableStoredCounts, where: ofOrganization, args: args},
		{What: WhatDeleted, Table: schema.TableAPIKeyUses, where: keys, args: args}, // before the keys that it is found by
		{What: WhatDeleted, Table: schema.TableAPIKeys, where: ofOrganization, args: args},
	}...)
}

// Person returns the steps that take a person out of an organization: the attribution records of the
// identifier are deleted, and the runs it started lose the initiator's identifier and name, so that
// the counts of runs stay what they were. The identifier is normalized as at ingest.
func Person(organization schema.OrganizationID, identifier string) []Step {
	args := []any{clickhouse.Named("organization", string(organization)), clickhouse.Named("identifier", schema.NormalizeIdentifier(identifier))}
	ofPerson := ofOrganization + " AND user_identifier = {identifier:String}"
	settledRuns, settledAttributions := schema.SettledOf(schema.TableRuns), schema.SettledOf(schema.TableAttributions)
	ofStarter := fmt.Sprintf("bitShiftRight(starter, %d) = ", schema.StarterInitiatorShift) + strings.Replace(schema.InitiatorOfSQL, "?", "{identifier:String}", 1)
	// Older versions that have not been merged away hold the person as well.
	started := ofOrganization + " AND (" + startedBy("record") + " OR " + startedBy("latest") + ")"
	// All rows of those runs, whoever started them in other versions.
	ofRuns := ofOrganization + " AND run_id IN (SELECT run_id FROM " + schema.TableRuns + " WHERE " + started + ")"
	return []Step{
		// Settled attribution records do not tell the person, so they go before what they are found by. So do the runs, all
		// rows of each; they are settled again as they will be then.
		{What: WhatDeleted, Table: settledAttributions.Table, args: args, where: ofOrganization +
			" AND attribution_id IN (SELECT attribution_id FROM " + schema.TableAttributions + " WHERE " + ofPerson + ")"},
		{What: WhatDeleted, Table: settledRuns.Table, args: args, where: ofOrganization + " AND " + ofStarter + " OR " + ofRuns},
		{What: WhatDeleted, Table: schema.TableStarters, args: args, where: ofOrganization + " AND " + ofStarter},
		{What: WhatDeleted, Table: schema.TableAttributions, where: ofPerson, args: args},
		{
			Table: schema.TableRuns, What: WhatAnonymous, args: args,
			again: ofRuns,
			where: started,
			// Each column for itself: where versions tie, latest may have another winner than the columns that queries
			// read (schema/DESIGN.md). The number of an identifier tells who it is just as well.
			change: "UPDATE latest = if(" + startedBy("latest") + ", (tupleElement(latest, 'state'), tupleElement(latest, 'agent_id'), NULL, NULL, tupleElement(latest, 'parent_run_id')), latest)" +
				", record = if(" + startedBy("record") + ", (tupleElement(record, 'state'), tupleElement(record, 'agent_id'), 0, NULL, NULL, tupleElement(record, 'parent_run_id')), record)" +
				", initiator = if(" + startedBy("record") + ", (tupleElement(initiator, 'state'), tupleElement(initiator, 'agent_id'), 0), initiator)",
		},
	}
}

// startedBy is the condition that a column of runs names the person as the one who started the run.
func startedBy(column string) string {
	return "ifNull(tupleElement(" + column + ", 'initiator_identifier') = {identifier:String}, false)"
}

// maxIDs bounds the ids of one statement: ClickHouse refuses a parameter of more than 128 KiB.
const maxIDs = 2000

// Records takes out single records of an organization.
func Records(ctx context.Context, conn driver.Conn, kind normalize.Kind, organization schema.OrganizationID, ids []uuid.UUID) error {
	table := map[normalize.Kind]string{normalize.KindAgent: schema.TableAgents, normalize.KindRun: schema.TableRuns, normalize.KindAttribution: schema.TableAttributions}[kind]
	settled := schema.SettledOf(table)
	var steps []Step
	for chunk := range slices.Chunk(ids, maxIDs) {
		texts := make([]string, len(chunk))
		for i, id := range chunk {
			texts[i] = id.String()
		}
		step := Step{What: WhatDeleted, Table: table, where: ofOrganization + " AND " + string(kind) + "_id IN {ids:Array(UUID)}",
			args: []any{clickhouse.Named("organization", string(organization)), clickhouse.Named("ids", texts)}}
		if steps = append(steps, step); settled != nil {
			step.Table = settled.Table
			steps = append(steps, step)
		}
	}
	if settled != nil {
		return Run(ctx, conn, steps, func(Step) {})
	}
	for _, step := range steps {
		if err := step.run(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// Run does the steps, one after the other, and calls after behind each. Meanwhile nothing is settled. Steps that
// end early, with an error or with the process, are to be run again.
func Run(ctx context.Context, conn driver.Conn, steps []Step, after func(Step)) error {
	return settle.Hold(ctx, conn, func(ctx context.Context) error {
		for _, s := range steps {
			if err := s.run(ctx, conn); err != nil {
				return err
			}
			after(s)
		}
		return nil
	})
}

// Count sets Rows to what Run would change now.
func (s *Step) Count(ctx context.Context, conn driver.Conn) error {
	if err := conn.QueryRow(ctx, "SELECT toInt64(count()) FROM "+s.Table+" WHERE "+s.where, s.args...).Scan(&s.Rows); err != nil {
		return fmt.Errorf("count the rows of %s: %w", s.Table, err)
	}
	return nil
}

// run changes the table and returns when every part of it is written anew, projections included.
// Parts that are merged meanwhile are waited for. It may be run again.
func (s *Step) run(ctx context.Context, conn driver.Conn) error {
	if s.again != "" {
		if err := s.alter(ctx, conn, "UPDATE last_stored_at = now64(3, 'UTC')", s.again); err != nil {
			return err
		}
	}
	change := s.change
	if change == "" {
		change = "DELETE"
	}
	return s.alter(ctx, conn, change, s.where)
}

func (s *Step) alter(ctx context.Context, conn driver.Conn, change, where string) error {
	// mutations_sync 2 waits for all replicas.
	statement := "ALTER TABLE " + s.Table + " " + change + " WHERE " + where + " SETTINGS mutations_sync = 2"
	if err := conn.Exec(ctx, statement, s.args...); err != nil {
		return fmt.Errorf("purge %s: %w", s.Table, err)
	}
	return nil
}
