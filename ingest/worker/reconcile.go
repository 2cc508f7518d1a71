package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/schema"
)

// recheckAfter is how much later a reconcile reads rows again that differ: polling copies them
// meanwhile, if it can see them.
const recheckAfter = 5 * time.Second

// A comparison that failed is made again after a pause that doubles: it reads everything again.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// reconcileEvery compares everything from time to time and copies again what differs.
func (w *worker) reconcileEvery(ctx context.Context) error {
	w.Status.comparing()
	pause := firstPause
	for {
		traced, span := w.Tracer.Begin(ctx, "full comparison")
		found, err := w.reconcile(traced)
		trace.End(span, err)
		if err != nil {
			if err := w.reconcileFailed(ctx, err, pause); err != nil {
				return err
			}
			pause = min(2*pause, longestPause)
			continue
		}
		pause = firstPause
		found.EndedAt = time.Now().UTC()
		w.Status.reconciled(found)
		w.Logger.Info("reconciled", "days_compared", found.Compared, "days_differed", found.Differed,
			"copied_again", found.Repaired, "replaced", found.Replaced, "missing_in_source", found.Missing,
			"deleted", found.Deleted, "deletions_refused", found.Refused, "invalid_in_source", found.Invalid,
			"rejected", found.Rejected)
		if left := found.Missing - found.Deleted - found.Refused; left > 0 {
			w.Logger.Warn(w.whyKept(), "count", left)
		}
		if snapshot.Pause(ctx, w.ReconcileEvery) != nil {
			return ctx.Err()
		}
	}
}

// whyKept is why records that the source does not have were not deleted, where they are not too many.
func (w *worker) whyKept() string {
	if w.DeleteMissing {
		return "records that the source does not have stay stored and are counted, because it has nothing of their " +
			"organization, or another source has that too (runlens purge --org removes an organization)"
	}
	return "records that the source does not have stay stored and are counted (--delete-missing)"
}

// reconcileFailed reports a failure and pauses, or returns an error that does not pass.
func (w *worker) reconcileFailed(ctx context.Context, failure error, pause time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !retryable(failure) {
		return write.Describe(failure)
	}
	why := postgres.Describe(failure)
	times := w.Status.reconcileFailed(why)
	level := slog.LevelWarn
	if times >= failuresUnready {
		level = slog.LevelError
	}
	w.Logger.Log(ctx, level, "the full comparison failed: "+why, "times", times, "pause", pause, "error", failure)
	return snapshot.Pause(ctx, pause)
}

// retryable reports whether a reconcile that ended with an error is made again. One that lost its claim in the middle
// of deleting is, and one for which a server answered that may be behind.
func retryable(err error) bool {
	return postgres.Retryable(err) || postgres.IsServer(err) || write.Retryable(err) || errors.Is(err, rollup.ErrLost)
}

func (w *worker) reconcile(ctx context.Context) (ReconcileStatus, error) {
	if err := w.finish(ctx); err != nil { // what an attempt before left
		return ReconcileStatus{}, err
	}
	// What a time without a zone means, and what a view has, may have changed since: the source would be right wrongly.
	if err := w.Source.Check(ctx); err != nil {
		return ReconcileStatus{}, err
	}
	if err := w.list.begin(ctx); err != nil {
		return ReconcileStatus{}, err
	}
	report, err := verify.Compare(ctx, verify.Options{
		Source: verify.Postgres{Database: w.Source}, Conn: w.Conn, Owns: w.Owns, RecheckAfter: recheckAfter,
		MaxIDs: math.MaxInt,
	})
	found := ReconcileStatus{
		Compared: int64(report.Groups), Differed: int64(len(report.Differences)), Rejected: report.Rejected,
	}
	if err != nil {
		return found, err
	}
	if err := w.list.renew(ctx, report); err != nil {
		return found, err
	}
	for _, d := range report.Differences {
		w.Logger.Warn("source and store differ", "organization", d.Organization, "kind", d.Kind, "day", d.Day, "missing",
			d.Missing.Count, "stale", d.Stale.Count, "newer", d.Newer.Count, "changed", d.Changed.Count, "extra",
			d.Extra.Count)
	}
	if found.Repaired, err = w.repair(ctx, report.Differences); err != nil {
		return found, err
	}
	for _, kind := range normalize.Kinds {
		if err := w.copiers[kind].rejectTimeless(ctx); err != nil {
			return found, err
		}
	}
	err = w.resolve(ctx, report, &found)
	return found, err
}

// repair copies the rows again that the store lacks or has in an older version, which the source's replaces. It returns
// how many it copied.
func (w *worker) repair(ctx context.Context, differences []verify.Difference) (copied int64, err error) {
	var groups []verify.Group
	wanted := map[verify.Part]map[uuid.UUID]bool{}
	for _, d := range differences {
		if len(d.Missing.IDs)+len(d.Stale.IDs) == 0 {
			continue
		}
		groups = append(groups, d.Group)
		part := verify.Part{Organization: d.Organization, Kind: d.Kind}
		if wanted[part] == nil {
			wanted[part] = map[uuid.UUID]bool{}
		}
		for _, id := range slices.Concat(d.Missing.IDs, d.Stale.IDs) {
			wanted[part][id] = true
		}
	}
	normalizer := normalize.NewNormalizer()
	var batch write.Batch
	flush := func() error {
		if err := w.write(ctx, &batch); err != nil {
			return err
		}
		copied += int64(batch.Len())
		batch.Clear()
		return nil
	}
	err = (verify.Postgres{Database: w.Source}).OfGroups(ctx, groups, func(record *source.Record) error {
		kind, organization := record.Raw.Kind, schema.OrganizationID(record.Raw.Values[0])
		id, err := uuid.ParseBytes(record.Raw.Values[1]) // of every kind, the field after the organization
		if err != nil || !wanted[verify.Part{Organization: organization, Kind: kind}][id] {
			return nil
		}
		if err := batch.Add(normalizer, &record.Raw); err != nil {
			return w.OnReject(ingest.NewReject("postgres:"+string(kind), record, err))
		}
		if batch.Len() < pageRows {
			return nil
		}
		return flush()
	})
	if err != nil {
		return copied, fmt.Errorf("copy again: %w", err)
	}
	return copied, flush()
}
