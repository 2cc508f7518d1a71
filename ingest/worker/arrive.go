package worker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/schema"
)

// ErrPlacement is returned where a worker has other organizations than it began with.
var ErrPlacement = errors.New("organizations were moved to or from the cell")

// load reads the checkpoint. That of another mapping says nothing about the rows that this one selects. The order of
// what is read is that of arrive.
func (c *copier) load(ctx context.Context) error {
	mapping := c.Source.Mapping().Fingerprint(c.kind)
	notes, err := readNotes(ctx, c.log, checkpointName(c.Name, c.kind), mapping)
	if err != nil {
		return err
	}
	_, c.known, err = c.log.Load(ctx, checkpointName(c.Name, c.kind), &c.saved)
	if err != nil {
		return err
	}
	if c.known && c.saved.Mapping != mapping {
		c.Logger.Warn("the checkpoint is that of another mapping; copying begins again", "kind", c.kind)
		c.saved = position{}
	}
	c.saved.Mapping = mapping
	if err := c.arrive(ctx, notes); err != nil {
		return err
	}
	c.Status.checkpoint(c.kind, c.saved)
	return nil
}

// readNotes reads what is noted, by name, of organizations that were moved here: how far they had been copied into the
// store where they were then (package move), for the worker with a checkpoint. That of another mapping says nothing.
func readNotes(ctx context.Context, log *checkpoint.Log, of, mapping string) (map[string]position, error) {
	names, err := notesOf(ctx, log, of)
	if err != nil {
		return nil, err
	}
	notes := map[string]position{}
	for _, name := range names {
		var theirs position
		if _, found, err := log.Load(ctx, name, &theirs); err != nil {
			return nil, err
		} else if !found {
			continue // another worker took it away meanwhile
		}
		if theirs.Mapping != mapping {
			theirs = position{}
		}
		notes[name] = theirs
	}
	return notes, nil
}

// notesOf returns the names of those notes.
func notesOf(ctx context.Context, log *checkpoint.Log, worker string) ([]string, error) {
	names, err := log.Names(ctx, schema.CheckpointArrived)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ":"+worker) }), err
}

// arrive goes back to what is noted: there may be changes that the worker of the other store had not copied by then,
// and which this one had passed already. The records that it copies again change nothing. None of it is lost, also
// where several workers have one source and store, each of which may be stopped, and go on, at any instant:
//
//  1. Notes are read, then the checkpoint, and then Arriving says whether the worker has what is here now. So if a
//     worker has not got an organization, neither had those whose checkpoints it read.
//  2. Notes are made before the placement says that the organization is here. They are taken away when a worker has
//     found nothing on its way after it had read them, and has saved a checkpoint that goes back. So who has got the
//     organization finds the notes, or that checkpoint or one that follows it.
//  3. A checkpoint counts more than all of a worker that has not got the organization, because its epoch is later.
func (c *copier) arrive(ctx context.Context, notes map[string]position) error {
	arriving, err := c.arriving(ctx)
	if err != nil || len(notes) == 0 {
		return err
	}
	next := c.saved
	for _, theirs := range notes {
		next.Certain, next.Until = earlier(next.Certain, theirs.Certain), earlier(next.Until, theirs.Until)
	}
	c.Logger.Info("copying again from where another cell had come with organizations that come from there",
		"kind", c.kind, "changed_after", next.Until)
	// The checkpoint first: a worker that dies in between goes back again.
	if err := c.keep(ctx, next); err != nil {
		return err
	}
	if arriving {
		return nil
	}
	if err := c.list.clear(ctx); err != nil {
		return err
	}
	for name := range notes {
		if err := c.log.Clear(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// arriving is Arriving, tried until the store says it.
func (c *copier) arriving(ctx context.Context) (arriving bool, err error) {
	if c.Arriving == nil {
		return false, nil
	}
	err = c.retry.Do(ctx, "find out where organizations are", func() (err error) {
		arriving, err = c.Arriving(ctx)
		return err
	})
	return arriving, err
}
