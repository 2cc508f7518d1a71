package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/runlens/runlens/ingest/checkpoint"
)

// A Fingerprint reports whether a file is still the one that was read before, and in the same way.
type Fingerprint struct {
	Path       string    `json:"path"` // absolute
	Bytes      int64     `json:"bytes"`
	ModifiedAt time.Time `json:"modified_at"`
	ReadAs     string    `json:"read_as"` // how it is read; what was read otherwise is not continued
}

// A Backfill is the run of one list of files, which a later run of the same list continues.
type Backfill struct {
	log         *checkpoint.Log
	id          string
	fingerprint string
}

// backfillPosition is what a checkpoint of a backfill contains. It is as long for any number of files.
type backfillPosition struct {
	Fingerprint string        `json:"fingerprint,omitzero"` // of all files
	Files       []Fingerprint `json:"files,omitzero"`       // instead, as earlier versions saved it
	Progress    Progress      `json:"progress"`
}

// NewBackfill returns the backfill of files, in this order; the order and the paths name it.
func NewBackfill(log *checkpoint.Log, files []Fingerprint) *Backfill {
	hash := sha256.New()
	for _, f := range files {
		fmt.Fprintf(hash, "%q\n", f.Path)
	}
	return &Backfill{log: log, id: hex.EncodeToString(hash.Sum(nil)[:16]), fingerprint: fingerprintOf(files)}
}

// fingerprintOf is one for all files.
func fingerprintOf(files []Fingerprint) string {
	hash := sha256.New()
	for _, f := range files {
		fmt.Fprintf(hash, "%q %d %d %q\n", f.Path, f.Bytes, f.ModifiedAt.UnixNano(), f.ReadAs)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// ID is 32 hexadecimal digits, the same for every run of the same list of files.
func (b *Backfill) ID() string { return b.id }

func (b *Backfill) name() string { return "ingest:" + b.id }

// Interrupted returns where an earlier run stopped and when, or false when there was none, it came to its
// end, or one of the files has changed since.
func (b *Backfill) Interrupted(ctx context.Context) (Progress, time.Time, bool, error) {
	var at backfillPosition
	savedAt, found, err := b.log.Load(ctx, b.name(), &at)
	if at.Files != nil {
		at.Fingerprint = fingerprintOf(at.Files)
	}
	if err != nil || !found || at.Fingerprint != b.fingerprint {
		return Progress{}, time.Time{}, false, err
	}
	return at.Progress, savedAt, true, nil
}

// Save takes note of how far the store has everything.
func (b *Backfill) Save(ctx context.Context, p Progress) error {
	return b.log.Save(ctx, b.name(), backfillPosition{Fingerprint: b.fingerprint, Progress: p})
}

// Finish deletes the checkpoint: the next run of the list begins again.
func (b *Backfill) Finish(ctx context.Context) error { return b.log.Clear(ctx, b.name()) }
