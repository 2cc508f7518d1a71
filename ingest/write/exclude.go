package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap/rollup"
)

// What a purged person did before the purge stays out, also where a batch was read before it:
//
//  1. A purge puts the person on the list, and deletes after that.
//  2. A writer reads the list, applies it to the batch, inserts, and reads the list again. Somebody who is on it only
//     then may have been purged before the rows came: the writer takes them out again before it goes on. Somebody who
//     is not on it yet is purged after the rows came, by 1. The first reading only spares that taking out, so it may be
//     one of a moment ago; the second one has to begin when the insert has been acknowledged.
//  3. A writer that tries an insert again applies the list again. An attempt that failed may have stored rows, or do it
//     later; so whoever is found then is taken out as in 2.
//  4. What a writer stored that died before it read the list again is found by a server when it refreshes the rollup
//     (rollup.Refresher.TakeOutLate). So is an attempt whose rows come after 2.

// freshFor is how old the list may be that is applied before an insert. It spares one of two statements a batch.
const freshFor = time.Second

// A reading is the list of purged people as it was read.
type reading struct {
	*purged.List
	began time.Time
}

// purged is the list of purged people as the Writer read it last; nil before that.
func (w *Writer) purged() *purged.List {
	if last := w.read.Load(); last != nil {
		return last.List
	}
	return nil
}

// Excludes reports whether an attribution record stays out, by the list of purged people as the Writer read it last.
// The error says why; it is a *normalize.Error.
func (w *Writer) Excludes(a *normalize.Attribution) error { return w.purged().Excludes(a) }

// ReadPurged reads the list of purged people.
func (w *Writer) ReadPurged(ctx context.Context) error {
	return w.retry.Do(ctx, "read the list of purged people", func() error { return w.readPurged(ctx) })
}

// readPurged keeps what it reads, unless a reading that began later has ended before: who was purged between the two is
// only on that one, which the other batch is about to apply.
func (w *Writer) readPurged(ctx context.Context) error {
	began := time.Now()
	list, err := purged.Read(ctx, w.conn, w.purged())
	for err == nil {
		last := w.read.Load()
		if last != nil && last.began.After(began) || w.read.CompareAndSwap(last, &reading{list, began}) {
			break
		}
	}
	return err
}

// late are the people whose rows may have been stored after they were purged, with the event clock until which those
// go.
type late map[purged.Person]time.Time

// exclude applies the list of purged people to a batch, and adds to found whose records it applied to.
func (w *Writer) exclude(b *Batch, found late) {
	list := w.purged()
	if list.Empty() {
		return
	}
	note := func(p purged.Person) {
		if until, ok := list.Until(p); ok && found != nil {
			found[p] = until
		}
	}
	excluded, anonymous := len(b.Excluded), b.Anonymous
	for i := len(b.indexes); i < len(b.Attributions); i++ {
		b.indexes = append(b.indexes, int32(i))
	}
	kept := 0
	for i, a := range b.Attributions {
		if list.Excludes(&a) != nil {
			note(purged.Person{Organization: a.OrganizationID, Identifier: a.UserIdentifier})
			b.Excluded = append(b.Excluded, Excluded{a, int(b.indexes[i])})
			continue
		}
		b.Attributions[kept], b.indexes[kept] = a, b.indexes[i]
		kept++
	}
	b.Attributions, b.indexes = b.Attributions[:kept], b.indexes[:kept]
	for i := range b.Runs {
		if r := &b.Runs[i]; list.Anonymizes(r) {
			note(purged.Person{Organization: r.OrganizationID, Identifier: *r.InitiatorIdentifier})
			list.Anonymize(r)
			b.Anonymous++
		}
	}
	w.leftOut(normalize.KindAttribution, len(b.Excluded)-excluded)
	w.leftOut(normalize.KindRun, b.Anonymous-anonymous)
}

func (w *Writer) leftOut(kind normalize.Kind, n int) {
	if n > 0 && w.LeftOut != nil {
		w.LeftOut(kind, n)
	}
}

// takeOut takes out of the store what came late.
func (w *Writer) takeOut(ctx context.Context, found late) error {
	for person, until := range found {
		w.retry.Logger.Warn("taking out records of a purged person that were read before the purge",
			"organization", person.Organization)
		retryable := func(err error) bool { return Retryable(err) || errors.Is(err, rollup.ErrLost) }
		err := w.retry.DoIf(ctx, "take out records of a purged person", retryable, func() error {
			return purge.Late(person.Organization, person.Identifier, until).Run(ctx, w.conn, func(purge.Step) {})
		})
		if err != nil {
			return fmt.Errorf("take out records of a purged person: %w", err)
		}
	}
	return nil
}
