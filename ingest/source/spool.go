package source

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// errSpool is the error of a temporary file, for which the source is not to blame.
var errSpool = errors.New("unpack into a temporary file")

func spoolError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errSpool, err)
}

// A spool is a temporary file for what does not fit into memory. It has no name any more, so that it is gone with the
// process, whatever ends that.
type spool struct {
	*os.File
	size int64
}

func newSpool() (*spool, error) {
	s := new(spool)
	return s, s.reset()
}

// reset makes the file, or makes it empty.
func (s *spool) reset() error {
	s.size = 0
	if s.File != nil {
		return spoolError(s.Truncate(0))
	}
	file, err := os.CreateTemp("", "runlens-*.parquet")
	if err != nil {
		return spoolError(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return spoolError(err)
	}
	s.File = file
	return nil
}

// Write appends.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.WriteAt(p, s.size)
	s.size += int64(n)
	return n, spoolError(err)
}

func (s *spool) close() {
	if s.File != nil {
		s.File.Close()
	}
}

// bound is how long the file may become: half of what is free, so that what is packed cannot fill the disk.
func (s *spool) bound() (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(s.Fd()), &disk); err != nil {
		return 0, spoolError(err)
	}
	return int64(disk.Bavail) / 2 * int64(disk.Bsize), nil
}

// fill copies a stream of at most so many bytes.
func (s *spool) fill(in io.Reader, most int64) error {
	n, err := io.Copy(struct{ io.Writer }{s}, io.LimitReader(in, most+1))
	if err == nil && n > most {
		return fmt.Errorf("unpacked it takes more than %d MiB, half of what is free in %s; unpack it before, or set TMPDIR",
			most>>20, os.TempDir())
	}
	return err
}
