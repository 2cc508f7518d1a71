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
	"strings"
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

// A Step is one table of a purge.
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

// Person takes a person out of an organization: the attribution records of the identifier are deleted, and the runs
// it started lose the initiator's identifier and name, so that the counts of runs stay what they were. The identifier
// is normalized as at ingest. Records go that were stored by now, and those of event clocks up to now, which stay out
// from then on (package purged).
func Person(organization schema.OrganizationID, identifier string) *Purge {
	// What is stored while the purge runs has no stamp ahead of the clock; what was before that was set back has.
	p := person(organization, identifier, func(clock string) string {
		return "(" + clock + " <= " + untilToken + " OR first_stored_at <= " + untilToken +
			" OR first_stored_at > now64(3, 'UTC'))"
	})
	p.person = &purged.Person{Organization: organization, Identifier: identifier}
	return p
}

// Late is the Person of somebody who was purged before, for what was stored since although it should have stayed out:
// records of event clocks up to until, inclusive. It leaves the list of purged people as it is.
func Late(organization schema.OrganizationID, identifier string, until time.Time) *Purge {
	p := person(organization, identifier, func(clock string) string { return clock + " <= " + untilToken })
	p.until = until
	return p
}

// untilToken stands in conditions for Purge.until, which Person does not know before it is run.
const untilToken = "{until}"

// sql is a condition with what untilToken stands for.
func (p *Purge) sql(condition string) string {
	return strings.ReplaceAll(condition, untilToken,
		fmt.Sprintf("fromUnixTimestamp64Milli(%d, 'UTC')", p.until.UnixMilli()))
}

// person is the purge of the records of which a condition over the event clock, SQL of a column, is true.
//
// A version of a run may have a name without an identifier, which no answer shows. Such a name goes where the person
// started the run by another version or by an attribution record, and where it is one of the names that the person
// has anywhere in the organization.
func person(organization schema.OrganizationID, identifier string, goes func(clock string) string) *Purge {
	p := newPurge(target{targetOrganization, string(organization)},
		target{targetIdentifier, schema.NormalizeIdentifier(identifier)})
	rollupRuns, rollupAttributions := schema.RollupOf(schema.TableRuns), schema.RollupOf(schema.TableAttributions)
	ofPerson := sql.All("user_identifier"+p.in(targetIdentifier, "key"), goes("occurred_at"))
	ofIdentifier := p.in(targetIdentifier, strings.Replace(schema.InitiatorOfSQL, "?", "key", 1))
	ofInitiator := fmt.Sprintf("bitShiftRight(initiator_key, %d)", schema.InitiatorKeyShift) + ofIdentifier
	// Older versions that have not been merged away have the person as well.
	started := sql.All(p.startedBy(), goes("created_at"))
	// All rows of those runs, whoever started them in other versions.
	ofRuns := "run_id" + p.in(targetRun, "toUUIDOrZero(key)")
	// The keys of records of the person.
	records := sql.In(sql.Select{
		Columns: []string{"occurred_at", "attribution_id"}, From: ofTarget(schema.TableAttributions),
		Where: p.where(ofPerson),
	})

	derive := func(kind targetKind, key, table string, conditions ...string) {
		p.derive = append(p.derive, sql.Select{
			Columns: []string{"'" + string(kind) + "'", key}, From: ofTarget(table), Where: p.where(conditions...),
		})
	}
	const ofRun = "toString(run_id)"
	derive(targetRun, ofRun, schema.TableRuns, started)
	derive(targetRun, ofRun, schema.TableAttributions, ofPerson, "activity_type = 'initiated'")
	derive(targetName, "assumeNotNull(user_name)", schema.TableAttributions, ofPerson, "isNotNull(user_name)")
	derive(targetRecord, ofRun, rollupRuns.Table, ofInitiator)
	derive(targetName, "assumeNotNull("+initiatorName+")", schema.TableRuns, started, "isNotNull("+initiatorName+")")

	// Rows of the rollup do not name the person, so they go before what they are found by. So do those of runs, all
	// of each; they are refreshed again as they will be then.
	p.delete(rollupAttributions.Table, "(occurred_at, attribution_id) IN"+records)
	p.delete(rollupRuns.Table, "("+ofInitiator+" OR "+ofRuns+")")
	// Texts go by text. Another person's may share a key with them, whose runs are refreshed again too.
	p.delete(schema.TableInitiatorKeys, "initiator_identifier"+p.in(targetIdentifier, "key"))
	p.delete(schema.TableSharedKeys, "initiator"+ofIdentifier)
	// Names before the identifiers and the records that they are found by, so that a purge that ended early finds
	// them again.
	p.Steps = append(p.Steps, Step{
		Table: schema.TableRuns, What: WhatNameless,
		where:  sql.All(p.where(p.nameless(ofRuns))...),
		change: "UPDATE record = " + recordWithout,
	}, Step{
		Table: schema.TableRuns, What: WhatAnonymous,
		again: sql.All(p.where("(" + ofRuns + " OR run_id" + p.in(targetRecord, "toUUIDOrZero(key)") + ")")...),
		where: sql.All(p.where(started)...),
		// The number of an identifier says who it is just as well.
		change: "UPDATE record = " + recordWithout + ", initiator = " + initiatorWithout,
	})
	// What is stored in the place of a record may have another clock, so that conflicts go with the rows. They go before
	// them: a purge that ended in between finds them again. A copy under another clock, with another person, counts when
	// the one that did is gone; it is not in the rollup.
	p.delete(schema.TableConflicts, "kind = '"+schema.ConflictAttribution+"'", "(clock, id) IN"+records)
	// A row with the same key that stays counts from then on. It is not in the rollup.
	stays := sql.Select{
		Columns: []string{"organization_id"}, From: ofTarget(schema.TableAttributions),
		Where: p.where("(occurred_at, attribution_id) IN"+records, "NOT ("+ofPerson+")"),
	}
	p.Steps = append(p.Steps, Step{
		Table: schema.TableAttributions, What: WhatDeleted, change: deletes,
		where:  sql.All(p.where(ofPerson)...),
		damage: stays.String(),
	}, Step{
		Table: schema.TableConflicts, What: WhatDeleted, change: deletes,
		where:  sql.All(p.where(schema.OfWronglySuperseded(ofTarget, p.ofOrganization()))...),
		damage: schema.WronglySuperseded(ofTarget, p.ofOrganization()).String(),
	})
	return p
}

// null is a null text. Where one branch of if is a plain NULL, ClickHouse only marks the value of the other one as
// null: the text itself would stay in the file.
const null = "CAST(NULL, 'Nullable(String)')"

// The columns of runs without the one who started the run.
const (
	initiatorName = "tupleElement(record, 'initiator_name')"
	recordWithout = "(tupleElement(record, 'state'), tupleElement(record, 'agent_id'), 0, " + null + ", " + null +
		", tupleElement(record, 'parent_run_id'))"
	initiatorWithout = "(tupleElement(initiator, 'state'), tupleElement(initiator, 'agent_id'), 0)"
)

// startedBy is the condition that a row of runs names the person as the one who started the run.
func (p *Purge) startedBy() string {
	return "ifNull(tupleElement(record, 'initiator_identifier')" + p.in(targetIdentifier, "key") + ", false)"
}

// nameless is the condition that a row of runs has a name without an identifier that may be the person's.
func (p *Purge) nameless(ofRuns string) string {
	return "isNull(tupleElement(record, 'initiator_identifier')) AND isNotNull(" + initiatorName + ")" +
		" AND (" + ofRuns + " OR ifNull(" + initiatorName + p.in(targetName, "key") + ", false))"
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
