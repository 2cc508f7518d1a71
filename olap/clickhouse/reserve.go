package clickhouse

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// reserveBytes is enough for the inserts of a revocation: ClickHouse refuses one if less than 1 MiB is free, and an
	// engine that has to be started for it writes some logs.
	reserveBytes = 8 << 20
	// reserveShare is how many times reserveBytes must be free before a reserve is made: it takes the last space from
	// nobody, and is not made again while the disk is nearly full.
	reserveShare = 8
	// reserveInterval is the pause between two looks at whether there is a reserve.
	reserveInterval = 30 * time.Second
)

// keepReserve makes the reserve whenever there is none and enough is free, until ctx is done. Without one everything
// works but a revocation on a full disk, so that its failures are no more than logged.
func (e *engine) keepReserve(ctx context.Context) {
	tick := time.NewTicker(reserveInterval)
	defer tick.Stop()
	for {
		if err := e.layout.makeReserve(); err != nil {
			e.logger.Warn("no space could be kept in reserve for revoking keys on a full disk", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// makeReserve writes the reserve if there is none and enough is free. What it writes can't be compressed, because file
// systems may do that.
func (l layout) makeReserve() error {
	var stat syscall.Statfs_t
	if _, err := os.Stat(l.reserve()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syscall.Statfs(l.dir, &stat); err != nil {
		return err
	}
	if uint64(stat.Bavail)*uint64(stat.Bsize) < reserveShare*reserveBytes {
		return nil
	}
	file, err := os.CreateTemp(l.dir, "reserve-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.CopyN(file, rand.Reader, reserveBytes)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), l.reserve())
}

// ReleaseReserve frees the space that the embedded engine of a data directory keeps for revoking keys on a full disk,
// and reports whether there was any. Processes that use the directory make it again when there is enough space.
func ReleaseReserve(dataDir string) (bool, error) {
	path := layoutOf(dataDir).reserve()
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	// Some file systems free the space of what was removed only with their journal.
	return true, syncPath(filepath.Dir(path))
}
