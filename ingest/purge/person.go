package purge

import (
	"fmt"
	"strings"
	"time"

	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// Person takes a person out of an organization: the attribution records of the identifier are deleted, and the runs
// it started lose the initiator's identifier and name, so that the counts of runs stay what they were. The identifier
// is normalized as at ingest. Records go that were stored by now, and those of event clocks up to now, which stay out
// from then on (package purged).
func Person(organization schema.OrganizationID, identifier string) *Purge {
	p := person(organization, identifier, func(p *Purge, t *schema.RollupTable) string {
		return "(" + t.Clock + " <= " + untilToken + " OR first_stored_at <= " + untilToken + " OR " + t.ID +
			p.inAhead(t) + ")"
	})
	p.person = &purged.Person{Organization: organization, Identifier: identifier}
	// What is stored while the purge runs has no stamp ahead of the clock; what was before that was set back has. It is
	// found first, by its id from then on: the clock may pass the stamp before the purge has ended.
	var ahead []sql.Select
	for source, ofPerson := range map[string]string{
		schema.TableAttributions: "user_identifier" + p.in(targetIdentifier, "key"), schema.TableRuns: p.startedBy(),
	} {
		ahead = append(ahead, sql.Select{
			Columns: []string{"'" + string(targetRecord) + "'",
				"concat('" + source + "', toString(" + schema.RollupOf(source).ID + "))"},
			From: ofTarget(source), Where: p.where(ofPerson, "first_stored_at > now64(3, 'UTC')"),
		})
	}
	p.derive = append(ahead, p.derive...)
	return p
}

// inAhead is the end of a condition: that an id is of a record of a source that was stamped ahead of the clock.
func (p *Purge) inAhead(t *schema.RollupTable) string {
	ids := p.selected(targetRecord, fmt.Sprintf("toUUIDOrZero(substring(key, %d))", len(t.Source)+1))
	ids.Where = append(ids.Where, "startsWith(key, '"+t.Source+"')")
	return " IN" + sql.In(ids)
}

// Late is the Person of somebody who was purged before, for what was stored since although it should have stayed out:
// records of event clocks up to until, inclusive. It leaves the list of purged people as it is.
func Late(organization schema.OrganizationID, identifier string, until time.Time) *Purge {
	p := person(organization, identifier, func(_ *Purge, t *schema.RollupTable) string {
		return t.Clock + " <= " + untilToken
	})
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

// person is the purge of the records of which a condition over the rows of a source is true.
//
// A version of a run may have a name without an identifier, which no answer shows. Such a name goes where the person
// started the run by another version or by an attribution record, and where it is one of the names that the person
// has anywhere in the organization.
func person(organization schema.OrganizationID, identifier string,
	goes func(*Purge, *schema.RollupTable) string) *Purge {
	p := newPurge(target{targetOrganization, string(organization)},
		target{targetIdentifier, schema.NormalizeIdentifier(identifier)})
	rollupRuns, rollupAttributions := schema.RollupOf(schema.TableRuns), schema.RollupOf(schema.TableAttributions)
	ofPerson := sql.All("user_identifier"+p.in(targetIdentifier, "key"), goes(p, rollupAttributions))
	ofIdentifier := p.in(targetIdentifier, strings.Replace(schema.InitiatorOfSQL, "?", "key", 1))
	ofInitiator := fmt.Sprintf("bitShiftRight(initiator_key, %d)", schema.InitiatorKeyShift) + ofIdentifier
	// Older versions that have not been merged away have the person as well.
	started := sql.All(p.startedBy(), goes(p, rollupRuns))
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
	// A row with the same key that stays counts from then on. It is not in the rollup.
	stays := sql.Select{
		Columns: []string{"organization_id"}, From: ofTarget(schema.TableAttributions),
		Where: p.where("(occurred_at, attribution_id) IN"+records, "NOT ("+ofPerson+")"),
	}
	p.Steps = append(p.Steps, Step{
		Table: schema.TableAttributions, What: WhatDeleted, change: deletes,
		where:  sql.All(p.where(ofPerson)...),
		damage: stays.String(),
	})
	// What is stored in the place of a record may have another clock, so that conflicts go with the rows. Those of clocks
	// with a row that stays do not, and none goes before the rows: what does not count would count twice.
	stay := sql.In(sql.Select{
		Columns: []string{"occurred_at", "attribution_id"}, From: ofTarget(schema.TableAttributions),
		Where: p.where("attribution_hash IN"+sql.In(sql.Select{
			Columns: []string{schema.IDHashSQL("id")}, From: ofTarget(schema.TableConflicts),
			Where: p.where(),
		}), "NOT ("+ofPerson+")"),
	})
	p.delete(schema.TableConflicts, "kind = '"+schema.ConflictAttribution+"'", "(clock, id) NOT IN"+stay)
	// A copy under another clock, with another person, counts when the one that did is gone. It is not in the rollup.
	wrong := schema.WronglySuperseded(ofTarget, p.ofOrganization())
	p.Steps = append(p.Steps, Step{
		Table: schema.TableConflicts, What: WhatDeleted, change: deletes,
		where: sql.All(p.where(schema.SupersededAmong(wrong))...), damage: wrong.String(),
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
