package worker

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/write"
)

// Rows whose updated_at is NULL or infinite have no place in the order of changes, so that every poll would read all of
// them again. They are read in the first pass and in the full comparisons only, and each that breaks a rule is
// rejected once.

// maxRejectedOnce bounds the memory of a rejectedOnce, to 16 MB about.
const maxRejectedOnce = 1_000_000

// A rejectedOnce knows by their hashes which rows have been rejected.
type rejectedOnce map[uint64]struct{}

var seed = maphash.MakeSeed()

func hash(key postgres.Key) uint64 {
	return maphash.String(seed, string(key.Organization)+"\x00"+key.ID)
}

func (r *rejectedOnce) add(key postgres.Key) {
	if *r == nil {
		*r = rejectedOnce{}
	}
	if len(*r) < maxRejectedOnce {
		(*r)[hash(key)] = struct{}{}
	}
}

func (r rejectedOnce) has(key postgres.Key) bool {
	_, ok := r[hash(key)]
	return ok
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

// rejectTimeless rejects the rows without a time that break a rule now and did not at the last reading. Those that
// break none have been compared.
func (c *copier) rejectTimeless(ctx context.Context) error {
	normalizer := normalize.NewNormalizer()
	full := len(c.timeless) == maxRejectedOnce
	var now rejectedOnce
	unknown := 0
	for at, n := (postgres.Key{}), pageRows; n == pageRows; {
		rejects := map[postgres.Key]ingest.Reject{}
		var batch write.Batch // of what breaks no rule, to nobody's use
		var err error
		n, err = c.Source.Timeless(ctx, c.kind, at, pageRows, func(r *source.Record, key postgres.Key) error {
			at = key
			if !c.owns(organizationOf(r)) {
				return nil
			}
			fault := batch.Add(normalizer, &r.Raw)
			if fault == nil {
				return nil
			}
			if now.add(key); !c.timeless.has(key) {
				rejects[key] = c.reject(r, fault)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read records without a time: %w", err)
		}
		if full {
			unknown += len(rejects) // which may have been rejected already
			continue
		}
		for key, reject := range rejects {
			if err := c.OnReject(reject); err != nil {
				return err
			}
			c.timeless.add(key)
		}
		c.Status.rejected(c.kind, len(rejects))
	}
	c.timeless = now
	if unknown > 0 {
		c.Logger.Warn("more records without a time break a rule than can be remembered; these are not rejected again",
			"kind", c.kind, "count", unknown)
	}
	return nil
}
