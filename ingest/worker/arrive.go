package worker

import (
	"context"
	"strings"

	"github.com/runlens/runlens/schema"
)

// arrive goes back to what had been copied of organizations that were moved here, into the store where they were then
// (package move): changes that the worker of that store had not copied by then, and which this one had passed already.
// The records that it copies again change nothing.
//
// What is noted of organizations that are still on their way is needed once more when they are here: it was noted
// before the placement said so, and a worker that begins in between has not got them. So notes stay until one begins of
// which AllHere holds when it has read them.
func (c *copier) arrive(ctx context.Context, mapping string) error {
	names, err := c.log.Names(ctx, schema.CheckpointArrived)
	if err != nil {
		return err
	}
	own := checkpointName(c.Name, c.kind)
	var arrived []string
	next := c.saved
	for _, name := range names {
		if !strings.HasSuffix(name, ":"+own) {
			continue
		}
		arrived = append(arrived, name)
		var theirs position
		if _, found, err := c.log.Load(ctx, name, &theirs); err != nil {
			return err
		} else if !found || theirs.Mapping != mapping {
			theirs = position{}
		}
		next.Certain, next.Until = earlier(next.Certain, theirs.Certain), earlier(next.Until, theirs.Until)
	}
	if len(arrived) == 0 {
		return nil
	}
	c.Logger.Info("organizations were moved here; copying again from where their cell had come", "kind", c.kind,
		"changed_after", next.Until)
	allHere, err := c.allHere(ctx)
	if err != nil {
		return err
	}
	// The checkpoint first: a worker that dies in between goes back again.
	if err := c.log.SaveBack(ctx, own, next); err != nil {
		return err
	}
	c.saved = next
	if !allHere {
		return nil
	}
	for _, name := range arrived {
		if err := c.log.Clear(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// allHere is AllHere, tried until the store says it.
func (c *copier) allHere(ctx context.Context) (allHere bool, err error) {
	if c.AllHere == nil {
		return true, nil
	}
	err = c.retry.Do(ctx, "find out where organizations are", func() (err error) {
		allHere, err = c.AllHere(ctx)
		return err
	})
	return allHere, err
}
