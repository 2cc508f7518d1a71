package rollup

import (
	"context"
	"fmt"
	"slices"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A repair makes the rollup of an organization and a source what the source says. Nothing depends on the process that
// does it: whatever a crash leaves, the entry of the damage stays in the log, and the next checker of any server begins
// a repair of its own.
//
//  1. Begin. A claim is taken and ended, so that the batch that wrote the entry has ended: it does so before it changes
//     which rows count (resolve). Mutations of processes that died are waited for. What was answered in the middle of a
//     change that died is out of date then (outdate). The sections are compared, one after the other, and all of their
//     records. Where a row was stored after the watermark, the next refresh adds what it says to what the rollup has of
//     its record. So that has to be right as well, and may not be: a move copies rows of a record that are older than
//     the watermark and rows that are not. A crash: the entry is there, begin again.
//  2. A section differs under a claim. The entry is written again with the claim's number, by which statements find the
//     organization. A query that read the log before the first entry finds it in its own snapshot
//     (schema.RollupUnchanged). A crash leaves two rows of the entry, of which the greater number counts.
//  3. Names that are wrong are deleted, and all names of the section written again. If rows or names still differ, the
//     organization's rows in the section are deleted and written again as the records are now. Those of which a row was
//     stored after the watermark too: a delta is relative to what the rollup has. If a projection still differs, the
//     partition is merged, which makes all of its projections from rows. Every statement carries the claim's fence, but
//     the merge, which changes nothing that is right. A crash leaves a part of that, and the entry.
//  4. The section is compared again, without the records of which a row was stored after the watermark, since such rows
//     go on arriving. A difference is an error; the entry stays.
//  5. End. When all sections were compared, and the entry has the number that it had at 1, which says that no other
//     process repaired anything meanwhile, it is taken out of the log, under a claim. Else begin again.
//
// While a change has the claim nothing is repaired. Whoever empties the rollup takes out the entries as well.
type repair struct {
	refresher *Refresher
	report    func([]Difference) // of what is repaired and was not announced
	of        snapshot.Damage    // as it was at 1
	table     *schema.RollupTable
	pending   []section // not compared yet
}

// newRepair does 1.
func (s *Refresher) newRepair(ctx context.Context, of snapshot.Damage, report func([]Difference)) (r *repair,
	err error) {
	r = &repair{refresher: s, report: report, of: of, table: schema.RollupOf(of.Source)}
	under, err := s.awaitClaim(ctx)
	if err == nil {
		err = under.end(ctx)
	}
	if err == nil {
		err = waitForMutations(ctx, s.conn)
	}
	if err != nil {
		return nil, err
	}
	if of.Announced {
		if err := outdate(ctx, s.conn, of.Number); err != nil {
			return nil, err
		}
	}
	if r.pending, err = partitions(ctx, s.conn, r.table); err != nil {
		return nil, err
	}
	return r, nil
}

// step does 2 to 4 for one section, and 5 after the last one. ended says that nothing is left to do; over without
// ended, that the repair has to begin again.
func (r *repair) step(ctx context.Context) (over, ended bool, err error) {
	if len(r.pending) == 0 {
		ended, err = r.end(ctx)
		return true, ended, err
	}
	next := r.pending[0].of(string(r.of.Organization))
	found, under, err := r.refresher.confirm(ctx, next, allRecords)
	if under != nil {
		if !r.of.Announced {
			r.report(found)
		}
		err = r.section(ctx, under, next, found)
		if endErr := under.end(ctx); err == nil {
			err = endErr
		}
	}
	if err == nil {
		r.pending = r.pending[1:]
	}
	return false, false, err
}

// section does 2 to 4.
func (r *repair) section(ctx context.Context, under *claim, s section, found []Difference) error {
	if err := under.damage(ctx, r.table.Source, r.of.Announced, string(r.of.Organization)); err != nil {
		return err
	}
	for _, fix := range []struct {
		what func(Difference) bool
		do   func(context.Context, *claim, section) error
	}{
		{ofNames, r.name}, {ofRecords, r.rewrite}, {func(Difference) bool { return true }, r.merge},
	} {
		if !slices.ContainsFunc(found, fix.what) {
			continue
		}
		if err := fix.do(ctx, under, s); err != nil {
			return err
		}
		var err error
		found, err = compare(ctx, r.refresher.conn, s, refreshedRecords, under.until, snapshot.RefreshQueryID())
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("rollup: %s of %s is still not what its source says after a repair", s.span(), s.table.Table)
	}
	return nil
}

func ofNames(d Difference) bool {
	return d.Table == schema.TableInitiatorKeys || d.Table == schema.TableSharedKeys
}
func ofRecords(d Difference) bool { return d.Projection == "" }

// entries is SQL of the number of a row of the log, after the condition that the row is a damage of the source.
func (r *repair) entries() string {
	return damaged + " AND source = '" + r.table.Source + "' AND tupleElement(latest, 1)"
}

// ofDamaged is the condition that a row is the organization's. ClickHouse keeps the texts of mutations, so that they
// do not name it.
func (r *repair) ofDamaged(c *claim) string {
	return "organization_id IN" + sql.In(sql.Select{
		Columns: []string{"organization_id"}, From: refreshed(schema.TableRollupLog),
		Where: []string{fmt.Sprintf("%s = %d", r.entries(), c.number)},
	})
}

func (r *repair) name(ctx context.Context, under *claim, s section) error {
	if err := under.Alter(ctx, schema.TableInitiatorKeys, "DELETE", r.ofDamaged(under)+" AND "+
		misnamed); err != nil {
		return err
	}
	if err := under.name(ctx, s.where(), s.args()...); err != nil {
		return err
	}
	return under.markShared(ctx, s.texts(), s.args()...)
}

func (r *repair) rewrite(ctx context.Context, under *claim, s section) error {
	if s.table.Key("initiator_key") != nil {
		if err := under.name(ctx, s.where(), s.args()...); err != nil {
			return err
		}
	}
	err := under.alterIn(ctx, s.table.Table, "DELETE", r.ofDamaged(under), s.id())
	if err != nil {
		return err
	}
	ofSource, _, names := s.table.Lists(len(s.table.Columns))
	key := s.table.RecordKey()
	err = under.add(inserting(ctx, nil), s.table.Table, slices.Concat(key, names, []string{"first_stored_at", "sign"}),
		sql.Select{
			Columns: slices.Concat(key, ofSource, []string{"first_stored_at", "1"}),
			From:    refreshed(s.table.Source).Final(true), Where: []string{s.where(), s.table.Counts(refreshed)},
		}, s.args()...)
	if err != nil {
		return err
	}
	return under.check(ctx)
}

func (r *repair) merge(ctx context.Context, under *claim, s section) error {
	optimize := "OPTIMIZE TABLE " + s.table.Table + " PARTITION ID '" + s.id() + "' FINAL"
	if err := r.refresher.conn.Exec(inserting(ctx, nil), optimize); err != nil {
		return fmt.Errorf("rollup: merge %s: %w", s.table.Table, err)
	}
	return under.check(ctx)
}

// end does 5.
func (r *repair) end(ctx context.Context) (ended bool, err error) {
	under, err := r.refresher.awaitClaim(ctx)
	if err != nil {
		return false, err
	}
	if ended, err = r.unlessRepaired(ctx); ended {
		err = r.takeOut(ctx, under)
	}
	if endErr := under.end(ctx); err == nil {
		err = endErr
	}
	return ended && err == nil, err
}

// unlessRepaired reports whether the entry has the number that it had at 1.
func (r *repair) unlessRepaired(ctx context.Context) (bool, error) {
	state, err := snapshot.ReadLog(ctx, r.refresher.conn)
	if err != nil {
		return false, err
	}
	entry := state.Damage(r.of.Records)
	return entry != nil && entry.Number == r.of.Number, nil
}

// takeOut takes the entry out of the log. To find it without its organization, it is written once more with the claim's
// number. Rows with smaller numbers, which may not be merged yet, go first: they are found by the greatest.
func (r *repair) takeOut(ctx context.Context, under *claim) error {
	if err := under.damage(ctx, r.table.Source, r.of.Announced, string(r.of.Organization)); err != nil {
		return err
	}
	older := fmt.Sprintf("%s < %d AND %s", r.entries(), under.number, r.ofDamaged(under))
	if err := under.Alter(ctx, schema.TableRollupLog, "DELETE", older); err != nil {
		return err
	}
	return under.Alter(ctx, schema.TableRollupLog, "DELETE", fmt.Sprintf("%s = %d", r.entries(), under.number))
}
