package worker

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
)

// Several sources may be copied into one store. What one of them lacks may be another's, so a comparison deletes
// nothing of an organization that another source has too. What is stored, next to the checkpoints, says which it has:
//
//  1. Before the first row of a kind is stored, the source has a checkpoint of the kind, and before the first one of an
//     organization is, the source's list has the organization, if there is a list. Without one it may have any.
//  2. A comparison makes a new list: of what the source has, of what was added to it since the comparison began, and of
//     what is gone. Of that, it leaves out what the comparison before found gone, too, if nothing was stored of it
//     since: a worker that stored some while the source was compared may have seen it in the list, and have added
//     nothing.
//  3. Rows that a move brings come from sources that it notes (arrive). Such a source may have any organization until
//     the notes are taken away, and its list was taken away before them.
//  4. Who deletes reads first which rows are stored, then the notes, the checkpoints and the lists. So it finds the
//     sources of all of them.

// organizations are those of a source, as hashes in ascending order: the names need not be stored once more.
type organizations struct {
	Hashes []uint64 `json:"hashes"`
	Gone   []uint64 `json:"gone,omitempty"` // those of them that the source had no more when it was compared last
}

func listOf(hashes, gone []uint64) organizations {
	slices.Sort(hashes)
	slices.Sort(gone)
	return organizations{slices.Compact(hashes), gone}
}

func (o organizations) has(hash uint64) bool  { return among(o.Hashes, hash) }
func (o organizations) gone(hash uint64) bool { return among(o.Gone, hash) }

func among(sorted []uint64, hash uint64) bool {
	_, ok := slices.BinarySearch(sorted, hash)
	return ok
}

func organizationsName(source string) string { return "organizations:" + source }

func organizationHash(o schema.OrganizationID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(o))
	return h.Sum64()
}

// A list is the list of the worker's source. Nothing of it is remembered: other workers of the source change it, too.
type list struct {
	mu   sync.Mutex
	log  *checkpoint.Log
	name string
	// before is what the list had when the comparison began that is under way, and since what was stored from then on.
	before organizations
	since  map[uint64]bool
}

func (w *worker) newList() *list {
	return &list{log: w.newLog(), name: organizationsName(w.Name), since: map[uint64]bool{}}
}

// add has the list have organizations of which rows are about to be stored.
func (l *list) add(ctx context.Context, stored map[schema.OrganizationID]bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(stored) == 0 {
		return nil
	}
	saved, found, err := l.read(ctx)
	var lacks []uint64
	for o := range stored {
		hash := organizationHash(o)
		l.since[hash] = true
		if !saved.has(hash) || saved.gone(hash) {
			lacks = append(lacks, hash)
		}
	}
	if err != nil || !found || len(lacks) == 0 {
		return err
	}
	gone := slices.DeleteFunc(saved.Gone, func(hash uint64) bool { return l.since[hash] })
	return l.log.Save(ctx, l.name, listOf(slices.Concat(saved.Hashes, lacks), gone))
}

// begin is called before a comparison, renew after it, with what the source had.
func (l *list) begin(ctx context.Context) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, _, err = l.read(ctx)
	l.since = map[uint64]bool{}
	return err
}

func (l *list) renew(ctx context.Context, report verify.Report) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	saved, found, err := l.read(ctx)
	if err != nil {
		return err
	}
	has := maps.Clone(l.since)
	for part, count := range report.Counts {
		if count.Source > 0 {
			has[organizationHash(part.Organization)] = true
		}
	}
	var gone []uint64
	for _, hash := range saved.Hashes {
		switch {
		case has[hash]:
		case !l.before.has(hash) || l.before.gone(hash) && !saved.gone(hash): // another worker added it
			has[hash] = true
		case !l.before.gone(hash): // for the first time
			has[hash] = true
			gone = append(gone, hash)
		}
	}
	next := listOf(slices.Collect(maps.Keys(has)), gone)
	if found && slices.Equal(saved.Hashes, next.Hashes) && slices.Equal(saved.Gone, next.Gone) {
		return nil
	}
	return l.log.Save(ctx, l.name, next)
}

// clear takes the list away: the source may have any organization. It does so where there is none, too, so that one
// which comes late, of a worker that has not got what arrived, does not count.
func (l *list) clear(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Clear(ctx, l.name)
}

func (l *list) read(ctx context.Context) (saved organizations, found bool, err error) {
	_, found, err = l.log.Load(ctx, l.name, &saved)
	return saved, found, err
}

// write stores records of the source, when others can know whose they are.
func (w *worker) write(ctx context.Context, b *write.Batch) error {
	if err := w.list.add(ctx, b.Organizations()); err != nil {
		return err
	}
	return w.writer.Write(ctx, b)
}

// deletable returns which records the source alone answers for, so that those it lacks may be deleted. It says which
// others cannot be.
func (w *worker) deletable(ctx context.Context, report verify.Report) (func(verify.Part) bool, error) {
	if !w.DeleteMissing {
		return func(verify.Part) bool { return false }, nil
	}
	log := w.newLog()
	noted, err := log.Names(ctx, schema.CheckpointArrived)
	if err != nil {
		return nil, err
	}
	names, err := log.Names(ctx, schema.CheckpointOfWorkers)
	if err != nil {
		return nil, err
	}
	arriving := map[string]bool{}
	for _, note := range noted {
		_, name, _ := strings.Cut(strings.TrimPrefix(note, schema.CheckpointArrived), ":")
		arriving[name] = true
		names = append(names, name)
	}
	slices.Sort(names)
	of := map[normalize.Kind][]organizations{} // of other sources that copy the kind
	unknown := map[normalize.Kind]bool{}       // kinds of which one of them may have any organization
	for _, name := range slices.Compact(names) {
		source, kind := sourceOf(name)
		if source == w.Name {
			continue
		}
		var theirs organizations
		_, found, err := log.Load(ctx, organizationsName(source), &theirs)
		if err != nil {
			return nil, err
		}
		if !found || arriving[name] { // not known: it may have any
			unknown[kind] = true
		}
		of[kind] = append(of[kind], theirs)
		w.Logger.Warn("another source is copied into the store; what both have an organization of is not deleted. If it is "+
			"no longer in use: runlens worker reset", "kind", kind, "source", source)
	}
	return func(part verify.Part) bool {
		hash := organizationHash(part.Organization)
		shared := slices.ContainsFunc(of[part.Kind], func(o organizations) bool { return o.has(hash) })
		return !unknown[part.Kind] && !shared && known(report, part.Organization)
	}, nil
}

// sourceOf is the inverse of checkpointName.
func sourceOf(checkpoint string) (source string, kind normalize.Kind) {
	rest := strings.TrimPrefix(checkpoint, schema.CheckpointOfWorkers)
	colon := strings.LastIndexByte(rest, ':')
	return rest[:max(colon, 0)], normalize.Kind(rest[colon+1:])
}
