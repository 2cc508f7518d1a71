package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Rejects writes rejected records to a file, a line each.
type Rejects struct {
	file   *os.File
	out    *bufio.Writer
	path   string // where the file goes at the end; empty when it is there
	count  int
	synced int // of count

	appended string                   // the path to which AppendRejects appends; else empty
	guard    func(*os.File) io.Writer // of it
}

// NewRejects begins a file that takes the place of the one at path when it is closed, so that until then that one is
// whole. The new file is in the same folder, and its name ends in ".partial". If a run has a name, so has its file:
// after a crash, whoever continues the run appends to it. A run that was interrupted has put its file in place; it is
// taken from there. Only its owner can read the file: rejects hold people's identifiers.
func NewRejects(path, run string, continued bool) (*Rejects, error) {
	if run == "" {
		file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err)) // of the other file nobody knows
		}
		return &Rejects{file: file, out: bufio.NewWriter(file), path: path}, nil
	}
	partial := path + "." + run + ".partial"
	if continued {
		if _, err := os.Stat(partial); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	file, err := openAlone(partial, path)
	if err == nil && !continued {
		err = file.Truncate(0)
	}
	if err != nil {
		return nil, err
	}
	return &Rejects{file: file, out: bufio.NewWriter(file), path: path}, nil
}

// openAlone opens the file that takes the place of the one at path, to append to it. Of two runs of the same files at a
// time the second is refused: it would take the rejects of the first for those of a run that crashed.
func openAlone(partial, path string) (*os.File, error) {
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	// Not every file system has locks.
	busy := errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	if busy || !isAt(file, partial) { // or its run has ended since it was opened
		file.Close()
		return nil, fmt.Errorf("%s: another run of the same files writes its rejects; wait until it ends", path)
	}
	return file, nil
}

// isAt reports whether a path is still that of a file.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	now, statErr := os.Stat(path)
	return err == nil && statErr == nil && os.SameFile(opened, now)
}

// AppendRejects appends to the file or pipe at path, for whoever never comes to an end. The lines go through what guard
// makes of it.
func AppendRejects(path string, guard func(*os.File) io.Writer) (*Rejects, error) {
	r := &Rejects{appended: path, guard: guard}
	return r, r.append()
}

func (r *Rejects) append() error {
	file, err := os.OpenFile(r.appended, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		r.file, r.out = file, bufio.NewWriter(r.guard(file))
	}
	return err
}

// Add writes a reject. It is in the file after Flush or Close.
func (r *Rejects) Add(reject Reject) error {
	r.count++
	line, err := reject.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = r.out.Write(line)
	return err
}

// AddNow is Add for whoever runs for long: a reject is in the file at once. A file that was moved or removed meanwhile,
// as by who fixes its rejects, gets no more of them: another one is begun.
func (r *Rejects) AddNow(reject Reject) error {
	if r.appended != "" && !isAt(r.file, r.appended) {
		if err := errors.Join(r.file.Close(), r.append()); err != nil {
			return err
		}
	}
	if err := r.Add(reject); err != nil {
		return err
	}
	return r.out.Flush()
}

// Flush returns when all rejects are on the disk. Only then may a checkpoint move past their records.
func (r *Rejects) Flush() error {
	if r.synced == r.count {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	r.synced = r.count
	if r.path == "" { // a pipe has no disk
		return nil
	}
	return r.file.Sync()
}

// Close puts the file in place, however the run ended.
func (r *Rejects) Close() error {
	err := errors.Join(r.Flush(), r.file.Close())
	if err == nil && r.path != "" {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err != nil {
		return fmt.Errorf("write the rejects: %w", err)
	}
	return nil
}
