package worker

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

const (
	// fewDeletions may be deleted whatever their share is.
	fewDeletions = 100
	// maxAsked bounds the ids of one statement of the source and of one line of the log.
	maxAsked = 1000
)

// Versions only move forward in the store, so a version that the source does not have must be taken out. For the
// records of one kind of an organization:
//
//  1. Copiers of this worker finish what they have read, and read nothing more.
//  2. The source is read once more. What it has now is right, unless a standby says so that may be behind what was
//     copied: then the comparison fails, and is made again.
//  3. The records are replaced (see replacement), and the copiers read again.
//
// What another process had read before 2 and stores after 3 is found by the next full comparison.

// resolve replaces the stored records whose version the source does not have, and deletes those that it does not
// have at all, with DeleteMissing.
func (w *worker) resolve(ctx context.Context, report verify.Report, found *ReconcileStatus) error {
	disputed := map[verify.Part][]uuid.UUID{}
	for _, d := range report.Differences {
		part := verify.Part{Organization: d.Organization, Kind: d.Kind}
		for _, rows := range []verify.Rows{d.Newer, d.Changed, d.Extra} {
			disputed[part] = append(disputed[part], rows.IDs...)
		}
	}
	deletable, err := w.deletable(ctx, report)
	if err != nil {
		return err
	}
	absent := map[verify.Part]map[uuid.UUID]bool{}
	missing := map[normalize.Kind]int64{}
	for part, ids := range disputed {
		absent[part], disputed[part] = map[uuid.UUID]bool{}, nil
		for chunk := range slices.Chunk(distinct(ids), pageRows) { // millions may differ
			now, err := w.read(ctx, part, chunk)
			if err != nil {
				return err
			}
			found.Invalid += now.invalid
			maps.Copy(absent[part], now.absent)
			disputed[part] = append(disputed[part], now.valid...)
		}
		if deletable(part) {
			missing[part.Kind] += int64(len(absent[part]))
		}
	}
	tooMany := map[normalize.Kind]bool{}
	for kind, n := range missing {
		tooMany[kind] = w.tooMany(report, kind, n)
	}
	for part, going := range disputed {
		n := int64(len(absent[part]))
		found.Missing += n
		switch {
		case !deletable(part):
		case tooMany[part.Kind]:
			found.Refused += n
		default:
			going = slices.AppendSeq(going, maps.Keys(absent[part]))
		}
		for chunk := range slices.Chunk(going, pageRows) {
			if err := w.take(ctx, part, chunk, absent[part], found); err != nil {
				return err
			}
		}
	}
	return nil
}

func distinct(ids []uuid.UUID) []uuid.UUID {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// known reports whether the source has any record of an organization. What it knows nothing of belongs to another
// source.
func known(report verify.Report, organization schema.OrganizationID) bool {
	for _, kind := range normalize.Kinds {
		if report.Counts[verify.Part{Organization: organization, Kind: kind}].Source > 0 {
			return true
		}
	}
	return false
}

// tooMany reports whether that many records of a kind are more than may be deleted at once.
func (w *worker) tooMany(report verify.Report, kind normalize.Kind, missing int64) bool {
	var stored int64
	for part, count := range report.Counts {
		if part.Kind == kind && known(report, part.Organization) {
			stored += count.Store
		}
	}
	if missing <= fewDeletions || float64(missing) <= w.DeleteMissingShare*float64(stored) {
		return false
	}
	w.Logger.Error("too many records are missing in the source; none is deleted", "kind", kind,
		"missing", missing, "stored", stored, "delete_missing_share", w.DeleteMissingShare)
	return true
}

// An answer is what the source has of some ids.
type answer struct {
	batch   write.Batch // what breaks no rule
	valid   []uuid.UUID // of batch
	invalid int64       // records that break a rule
	absent  map[uuid.UUID]bool
}

func (w *worker) read(ctx context.Context, part verify.Part, ids []uuid.UUID) (answer, error) {
	a := answer{absent: make(map[uuid.UUID]bool, len(ids))}
	for _, id := range ids {
		a.absent[id] = true
	}
	normalizer := normalize.NewNormalizer()
	for chunk := range slices.Chunk(ids, maxAsked) {
		err := w.Source.OfIDs(ctx, part.Kind, part.Organization, chunk, func(record *source.Record) error {
			id, err := uuid.ParseBytes(record.Raw.Values[1]) // of every kind, the field after the organization
			if err != nil {
				return nil
			}
			delete(a.absent, id)
			if err := a.batch.Add(normalizer, &record.Raw); err != nil {
				a.invalid++
				return nil
			}
			a.valid = append(a.valid, id)
			return nil
		})
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// take replaces those of some records that the source has by what it has, and deletes those that were absent from it
// and still are. Those that break a rule there stay as they are stored.
func (w *worker) take(ctx context.Context, part verify.Part, ids []uuid.UUID, absent map[uuid.UUID]bool,
	found *ReconcileStatus) error {
	copier := w.copiers[part.Kind]
	copier.inFlight.Lock()
	defer copier.inFlight.Unlock()
	now, err := w.read(postgres.Latest(ctx), part, ids)
	if err != nil {
		return err
	}
	var deleted []uuid.UUID
	for id := range now.absent {
		if absent[id] {
			deleted = append(deleted, id)
		}
	}
	going := slices.Concat(now.valid, deleted)
	if len(going) == 0 {
		return nil
	}
	begun, err := w.begin(ctx, part, going)
	if err != nil {
		return err
	}
	if err := w.replace(ctx, begun, going, &now.batch); err != nil {
		return err
	}
	found.Deleted += int64(len(deleted))
	found.Replaced += int64(len(now.valid))
	w.Status.addReplaced(len(now.valid))
	w.report("replaced records whose version the source does not have", part, now.valid)
	w.report("deleted records that the source does not have", part, deleted)
	return nil
}

func (w *worker) report(what string, part verify.Part, ids []uuid.UUID) {
	for chunk := range slices.Chunk(ids, maxAsked) {
		w.Logger.Warn(what, "organization", part.Organization, "kind", part.Kind, "count", len(chunk), "ids", chunk)
	}
}
