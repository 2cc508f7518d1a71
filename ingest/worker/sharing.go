package worker

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/schema"
)

// Several sources may be copied into one store. What one of them lacks may be another's, so a comparison deletes
// nothing of an organization that another source has too. For that each comparison saves which organizations its
// source has, next to the checkpoints.

// organizations are those of a source, as hashes in ascending order: the names need not be stored once more.
type organizations struct {
	Hashes []uint64 `json:"hashes"`
}

func organizationsName(source string) string { return "organizations:" + source }

func organizationHash(o schema.OrganizationID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(o))
	return h.Sum64()
}

func (o organizations) has(id schema.OrganizationID) bool {
	_, ok := slices.BinarySearch(o.Hashes, organizationHash(id))
	return ok
}

// saveOrganizations stores which organizations the source has, if that has changed.
func (w *worker) saveOrganizations(ctx context.Context, report verify.Report) error {
	var now organizations
	for part, count := range report.Counts {
		if count.Source > 0 {
			now.Hashes = append(now.Hashes, organizationHash(part.Organization))
		}
	}
	slices.Sort(now.Hashes)
	now.Hashes = slices.Compact(now.Hashes)
	log, name := checkpoint.NewLog(w.Conn, w.retry), organizationsName(w.Name)
	var saved organizations
	if _, found, err := log.Load(ctx, name, &saved); err != nil || found && slices.Equal(saved.Hashes, now.Hashes) {
		return err
	}
	return log.Save(ctx, name, now)
}

// deletable returns which records the source alone answers for, so that those it lacks may be deleted. It says which
// others cannot be.
func (w *worker) deletable(ctx context.Context, report verify.Report) (func(verify.Part) bool, error) {
	if !w.DeleteMissing {
		return func(verify.Part) bool { return false }, nil
	}
	log := checkpoint.NewLog(w.Conn, w.retry)
	names, err := log.Names(ctx, schema.CheckpointOfWorkers)
	if err != nil {
		return nil, err
	}
	of := map[normalize.Kind][]organizations{} // of other sources that copy the kind
	for _, name := range names {
		source, kind := sourceOf(name)
		if source == w.Name {
			continue
		}
		var theirs organizations
		if _, found, err := log.Load(ctx, organizationsName(source), &theirs); err != nil {
			return nil, err
		} else if !found { // not known: it may have any
			for part := range report.Counts {
				theirs.Hashes = append(theirs.Hashes, organizationHash(part.Organization))
			}
			slices.Sort(theirs.Hashes)
		}
		of[kind] = append(of[kind], theirs)
		w.Logger.Warn("another source is copied into the store; what both have an organization of is not deleted. If it is "+
			"no longer in use: runlens worker reset", "kind", kind, "source", source)
	}
	return func(part verify.Part) bool {
		shared := slices.ContainsFunc(of[part.Kind], func(o organizations) bool { return o.has(part.Organization) })
		return !shared && known(report, part.Organization)
	}, nil
}

// sourceOf is the inverse of checkpointName.
func sourceOf(checkpoint string) (source string, kind normalize.Kind) {
	rest := strings.TrimPrefix(checkpoint, schema.CheckpointOfWorkers)
	colon := strings.LastIndexByte(rest, ':')
	return rest[:max(colon, 0)], normalize.Kind(rest[colon+1:])
}
