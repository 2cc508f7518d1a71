package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/ingest"
)

// shownRejects is how many rejects are printed to standard error when no file takes them.
const shownRejects = 10

// rejects writes rejected records to a file, or prints the first of them.
type rejects struct {
	mu     sync.Mutex // of addNow
	file   *os.File
	out    *bufio.Writer
	path   string // where the file goes at the end; empty when it is there
	stderr io.Writer
	count  int
	synced int // of count
}

// newRejects begins a file that takes the place of the one at path when it is closed, so that until then that one is
// whole. The new file is in the same folder, and its name ends in ".partial". If a run has a name, so has its file:
// after a crash, whoever continues the run appends to it. A run that was interrupted has put its file in place; it is
// taken from there. An existing path that is no regular file, such as a pipe, is written as it is.
func newRejects(path, run string, continued bool, stderr io.Writer) (*rejects, error) {
	if path == "" {
		return &rejects{stderr: stderr}, nil
	}
	path, old, err := output.Place(path)
	if err != nil {
		return nil, err
	}
	if old != nil && !old.Mode().IsRegular() {
		return appendRejects(path, stderr)
	}
	if run == "" {
		file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
		if err != nil {
			return nil, err
		}
		return &rejects{file: file, out: bufio.NewWriter(file), path: path}, nil
	}
	partial := path + "." + run + ".partial"
	mode := os.O_TRUNC
	if continued {
		mode = os.O_APPEND
		if _, err := os.Stat(partial); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY|mode, 0o600) // rejects hold people's identifiers
	if err != nil {
		return nil, err
	}
	return &rejects{file: file, out: bufio.NewWriter(file), path: path}, nil
}

// appendRejects appends to the file at path, for whoever never comes to an end.
func appendRejects(path string, stderr io.Writer) (*rejects, error) {
	if path == "" {
		return &rejects{stderr: stderr}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &rejects{file: file, out: bufio.NewWriter(output.Guarded(file))}, nil
}

func (r *rejects) add(reject ingest.Reject) error {
	r.count++
	if r.file == nil {
		if r.count <= shownRejects {
			place := reject.Error
			if reject.Field != "" {
				place = reject.Field + " " + place
			}
			say(r.stderr, "rejected: %s line %d: %s", reject.Source, reject.Line, place)
		}
		return nil
	}
	line, err := reject.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = r.out.Write(line)
	return err
}

// addNow is add for whoever runs for long, from several goroutines: a reject is in the file at once.
func (r *rejects) addNow(reject ingest.Reject) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(reject); err != nil {
		return err
	}
	if r.file == nil {
		return nil
	}
	return r.out.Flush()
}

// flush returns when all rejects are on the disk. Only then may a checkpoint move past their records.
func (r *rejects) flush() error {
	if r.file == nil || r.synced == r.count {
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

// close puts the file in place, however the run ended.
func (r *rejects) close() error {
	switch {
	case r.file != nil:
		err := errors.Join(r.flush(), r.file.Close())
		if err == nil && r.path != "" {
			err = os.Rename(r.file.Name(), r.path)
		}
		if err != nil {
			return fmt.Errorf("write the rejects: %w", err)
		}
	case r.count > shownRejects:
		say(r.stderr, "rejected: %d more; --rejects FILE keeps all of them", r.count-shownRejects)
	}
	return nil
}
