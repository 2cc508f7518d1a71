// Package purge takes records out of the store for good, in every table, part and projection: those of an
// organization, those of one person (a data-protection request), or single ones.
//
// No statement names what is purged. ClickHouse keeps the text of mutations in files and in system.mutations, and
// servers keep that of every statement in a query log, so an identifier in it would outlive the purge. The identifier
// goes into the table purge_targets as data, under the purge's random number, and statements name the number.
package purge

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Purge is what is to be taken out. It is made by Organization or Person, and may be run again when it failed.
type Purge struct {
	Steps []Step

	number  uint64       // names it in every statement
	targets []target     // what it was given
	derive  []sql.Select // of further targets, kind and key, from the store

	person *purged.Person // who goes on the list of purged people; nil for nobody
	until  time.Time      // of a person: the event clock up to which records go, inclusive
	moved  bool           // the records are in another store, so that nothing has to be gone at once
}

// A Step is one change of a table.
type Step struct {
	Table string `json:"table"`
	What  string `json:"what"` // WhatDeleted, WhatAnonymous or WhatNameless
	Rows  int64  `json:"rows"` // stored rows, repeats and older versions included

	again  string // condition for the rows that are marked beforehand as just stored, so that they are refreshed again
	damage string // SQL of the organizations whose rollup of attributions has to be repaired after it, if there are any
	change string // what ALTER TABLE does
	where  string
}

// What happens to the rows of a step.
const (
	WhatDeleted   = "deleted"
	WhatAnonymous = "made anonymous"
	WhatNameless  = "stripped of a name" // that was there without an identifier
)

const deletes = "DELETE"

// Summary is what the steps change, with one of each table and of what happens to its rows.
func (p *Purge) Summary() (all []Step) {
	for _, s := range p.Steps {
		same := func(other Step) bool { return other.Table == s.Table && other.What == s.What }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Rows += s.Rows
		} else {
			all = append(all, s)
		}
	}
	return all
}

func newPurge(targets ...target) *Purge {
	var b [8]byte
	rand.Read(b[:])
	return &Purge{number: binary.LittleEndian.Uint64(b[:]), targets: targets}
}

// A purge names its organization in purge_targets, so that no statement names it (Purge).
var ofTarget = sql.AllOrganizations("the purge's conditions name one of them by its number")

// stored selects an expression over the purge's targets.
func (p *Purge) stored(expression string) sql.Select {
	return sql.Select{
		Columns: []string{expression}, From: ofTarget(schema.TablePurgeTargets),
		Where: []string{fmt.Sprintf("purge = %d", p.number)},
	}
}

// selected selects an expression over the key of the purge's targets of a kind.
func (p *Purge) selected(k targetKind, expression string) sql.Select {
	s := p.stored(expression)
	s.Where = append(s.Where, "kind = '"+string(k)+"'")
	return s
}

// in is the end of a condition: that a value is the key of one of the purge's targets of a kind, or an expression over
// it.
func (p *Purge) in(k targetKind, expression string) string {
	return " IN" + sql.In(p.selected(k, expression))
}

func (p *Purge) ofOrganization() string { return "organization_id" + p.in(targetOrganization, "key") }

// where are conditions over a table's rows of the purge's organizations.
func (p *Purge) where(conditions ...string) []string {
	return append([]string{p.ofOrganization()}, conditions...)
}

// delete adds a step for a table's rows of the purge's organizations that satisfy further conditions.
func (p *Purge) delete(table string, conditions ...string) {
	p.Steps = append(p.Steps, Step{Table: table, What: WhatDeleted, change: deletes,
		where: sql.All(p.where(conditions...)...)})
}

// Organization takes out everything of organizations, at least one, their API keys included.
func Organization(organizations ...schema.OrganizationID) *Purge {
	targets := make([]target, len(organizations))
	for i, organization := range organizations {
		targets[i] = target{targetOrganization, string(organization)}
	}
	p := newPurge(targets...)
	sources := []string{schema.TableAttributions, schema.TableRuns, schema.TableAgents, schema.TableInsertCounters,
		schema.TableConflicts, schema.TableReplacements, schema.TableUsageLog}
	for _, table := range append(schema.Derived(), sources...) {
		p.delete(table)
	}
	// Uses go before the keys that they are found by.
	p.Steps = append(p.Steps, Step{Table: schema.TableAPIKeyUses, What: WhatDeleted, change: deletes,
		where: "key_id IN" + sql.In(sql.Select{
			Columns: []string{"key_id"}, From: ofTarget(schema.TableAPIKeys), Where: p.where(),
		})})
	p.delete(schema.TableAPIKeys)
	p.delete(schema.TableRollupLog) // what is damaged of its rollup, which is whole only now
	return p
}

// Moved takes out what a store has of organizations, at least one, that are in another one, with what it says of who
// did what to them if that was copied. only is SQL of a condition under which it does so, evaluated wherever rows go.
func Moved(only string, audited bool, organizations ...schema.OrganizationID) *Purge {
	p := Organization(organizations...)
	p.moved = true
	if audited {
		p.delete(schema.TableAuditLog)
	}
	for i := range p.Steps {
		p.Steps[i].where = "(" + p.Steps[i].where + ") AND " + only
	}
	return p
}

// Records takes out single records of an organization.
func Records(
	ctx context.Context, conn driver.Conn, kind normalize.Kind, organization schema.OrganizationID, ids []uuid.UUID,
) error {
	table := map[normalize.Kind]string{
		normalize.KindAgent: schema.TableAgents, normalize.KindRun: schema.TableRuns,
		normalize.KindAttribution: schema.TableAttributions,
	}[kind]
	targets := []target{{targetOrganization, string(organization)}}
	for _, id := range ids {
		targets = append(targets, target{targetRecord, id.String()})
	}
	p := newPurge(targets...)
	ofRecords := string(kind) + "_id" + p.in(targetRecord, "toUUIDOrZero(key)")
	p.delete(table, ofRecords)
	if rollup := schema.RollupOf(table); rollup != nil {
		p.delete(rollup.Table, ofRecords)
		// What is stored in their place may be right where they were wrong.
		p.delete(schema.TableConflicts, "kind = '"+string(kind)+"'", "id"+p.in(targetRecord, "toUUIDOrZero(key)"))
	}
	return p.Run(ctx, conn, func(Step) {})
}
