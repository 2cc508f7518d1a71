package worker

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// Rows whose updated_at is NULL or infinite have no place in the order of changes, so that every poll would read all of
// them again. They are read in the first pass and in the full comparisons only, and each that breaks a rule is rejected
// once. Nor do rows without an id or an organization: they are read in the full comparisons, or after the first pass if
// there are none.

// maxRejectedOnce bounds the memory of a rejectedOnce, to 40 MB about.
const maxRejectedOnce = 1_000_000

// A rejectedOnce knows by their hashes which rows have been rejected, and how many of each hash: rows without a key may
// be equal.
type rejectedOnce map[uint64]int32

var seed = maphash.MakeSeed()

func hash(key postgres.Key) uint64 {
	return maphash.String(seed, string(key.Organization)+"\x00"+key.ID)
}

// hashRecord distinguishes versions of a row, and rows without a key, by all that they contain.
func hashRecord(r *source.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, value := range r.Raw.Values {
		end := byte(0) // which no text of PostgreSQL has
		if value == nil {
			end = 1
		}
		h.Write(value)
		h.WriteByte(end)
	}
	return h.Sum64()
}

// add counts a row, and returns how many there are of its hash now.
func (r *rejectedOnce) add(hash uint64) int32 {
	if *r == nil {
		*r = rejectedOnce{}
	}
	n := (*r)[hash] + 1
	if n > 1 || len(*r) < maxRejectedOnce {
		(*r)[hash] = n
	}
	return n
}

// copyTimeless copies the rows without a time.
func (c *copier) copyTimeless(ctx context.Context) error {
	for at := (postgres.Key{}); ; {
		last, _, err := c.page(ctx, c.Source.Timeless, at)
		if err != nil || last == nil {
			return err
		}
		at = *last
	}
}

// rejectKeyless rejects the rows without a key that a worker finds at its start. No index has them, so that no copier
// may wait for it.
func (w *worker) rejectKeyless(ctx context.Context) error {
	for _, kind := range normalize.Kinds {
		err := w.reading(ctx, "read "+string(kind)+" records without an id", func() error {
			return w.copiers[kind].rejectKeyless(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rejectKeyless rejects the rows without a key that have not been rejected. They are remembered by themselves, so that
// a table of which a million others have no time does not hide them.
func (c *copier) rejectKeyless(ctx context.Context) error {
	normalizer := normalize.NewNormalizer()
	full, unknown := len(c.keyless) == maxRejectedOnce, 0
	var now rejectedOnce
	err := c.Source.Keyless(ctx, c.kind, func(r *source.Record) error {
		if !c.owns(organizationOf(r)) {
			return nil
		}
		fault := normalizer.Check(&r.Raw) // every kind needs both
		row := hashRecord(r)
		if fault == nil || now.add(row) <= c.keyless[row] {
			return nil
		}
		if full { // it may have been rejected already
			unknown++
			return nil
		}
		return c.rejectOnce(&c.keyless, row, c.reject(r, fault))
	})
	if err != nil {
		return err
	}
	c.keyless = now
	c.warnUnknown(unknown)
	return nil
}

// rejectOnce rejects a row of a hash, and has a set know of it: a comparison that fails later is made again.
func (c *copier) rejectOnce(set *rejectedOnce, row uint64, reject ingest.Reject) error {
	if err := c.OnReject(reject); err != nil {
		return err
	}
	set.add(row)
	c.Status.rejected(c.kind, 1)
	return nil
}

// rejectTimeless rejects the rows without a time or a key that break a rule now and did not at the last reading. Those
// that break none have been compared.
func (c *copier) rejectTimeless(ctx context.Context) error {
	if err := c.rejectKeyless(ctx); err != nil {
		return fmt.Errorf("read records without an id: %w", err)
	}
	normalizer := normalize.NewNormalizer()
	full, unknown := len(c.timeless) == maxRejectedOnce, 0
	var now rejectedOnce
	for at, n := (postgres.Key{}), pageRows; n == pageRows; {
		var err error
		n, err = c.Source.Timeless(ctx, c.kind, at, pageRows, func(r *source.Record, key postgres.Key) error {
			at = key
			if !c.owns(organizationOf(r)) {
				return nil
			}
			fault := normalizer.Check(&r.Raw)
			if fault == nil {
				return nil
			}
			row := hash(key)
			if now.add(row) <= c.timeless[row] {
				return nil
			}
			if full { // it may have been rejected already
				unknown++
				return nil
			}
			return c.rejectOnce(&c.timeless, row, c.reject(r, fault))
		})
		if err != nil {
			return fmt.Errorf("read records without a time: %w", err)
		}
	}
	c.timeless = now
	c.warnUnknown(unknown)
	return nil
}

// warnUnknown says how many rows break a rule and may have been rejected or not.
func (c *copier) warnUnknown(n int) {
	if n > 0 {
		c.Logger.Warn("more records without a time or an id break a rule than can be remembered; these are not rejected "+
			"again", "kind", c.kind, "count", n)
	}
}
