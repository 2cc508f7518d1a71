// Package fetch brings the embedded engine's library to a machine that has neither Go nor npm.
//
//  1. The registry's document of the package says where the pinned version is.
//  2. The packed package is read once: its library goes into a temporary file while its SHA-512 is computed.
//  3. Only if that is the pinned one is the file renamed to what the engine is started from.
//
// Nothing of a package chooses a path: one file is unpacked, to a name of ours.
package fetch

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runlens/runlens/deploy/engine"
)

// ErrIntegrity is returned when a package is not the pinned one.
var ErrIntegrity = errors.New("the package is not the one that was pinned, and nothing of it is kept")

// A Source is a packed package that is being read.
type Source struct {
	io.ReadCloser
	Bytes int64 // how many there are; -1 when unknown
	// Integrity is the checksum that the package must have, in the form of engine.Package; of several, one of them.
	Integrity string
}

// FromFile opens a packed package that somebody brought here, as by `npm pack`. Only a pinned one can be checked.
func FromFile(path string, pinned engine.Package) (*Source, error) {
	if pinned.Integrity == "" {
		return nil, fmt.Errorf("no checksum of %s is pinned, so that a file can't be checked; name a registry", pinned.Name)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Source{file, info.Size(), pinned.Integrity}, nil
}

// Install unpacks the library of a source to path, all or nothing, and calls progress with the bytes read so far. It
// does not close the source. Errors: ErrIntegrity, of reading, and of the disk.
func Install(ctx context.Context, from *Source, path string, progress func(read int64)) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+engine.File+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temporary.Close(), os.Remove(temporary.Name()))
		}
	}()
	sum := sha512.New()
	packed := io.TeeReader(&counted{ctx: ctx, from: from, progress: progress}, sum)
	unpacking := unpack(packed, temporary)
	// What follows the library counts for the sum, also where it can't be unpacked: it is then another package.
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return fmt.Errorf("read the package: %w", err)
	}
	got := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	if !slices.Contains(strings.Fields(from.Integrity), got) {
		return fmt.Errorf("%w: it has %s, not %q", ErrIntegrity, got, from.Integrity)
	}
	if unpacking != nil {
		return unpacking
	}
	if err := errors.Join(temporary.Chmod(0o755), temporary.Sync()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return temporary.Close()
}

// A counted reader ends with its context, and reports what it has read.
type counted struct {
	ctx      context.Context
	from     io.Reader
	read     int64
	progress func(read int64)
}

func (c *counted) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	c.read += int64(n)
	c.progress(c.read)
	return n, err
}
