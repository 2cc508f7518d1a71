package main

import (
	"io"
	"os"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/ingest"
)

// rejects take rejected records: a file (ingest.Rejects), or the terminal.
type rejects interface {
	Add(ingest.Reject) error
	AddNow(ingest.Reject) error
	Flush() error
	Close() error
}

// newRejects begins the file at path for a run, or prints the first rejects where the path is empty. An existing path
// that is no regular file, such as a pipe, is written as it is.
func newRejects(path, run string, continued bool, stderr io.Writer) (rejects, error) {
	if path == "" {
		return &shownRejects{stderr: stderr}, nil
	}
	path, old, err := output.Place(path)
	if err != nil {
		return nil, err
	}
	if old != nil && !old.Mode().IsRegular() {
		return appendRejects(path, stderr)
	}
	return ingest.NewRejects(path, run, continued)
}

// appendRejects appends to the file at path, or prints the first rejects where it is empty.
func appendRejects(path string, stderr io.Writer) (rejects, error) {
	if path == "" {
		return &shownRejects{stderr: stderr}, nil
	}
	return ingest.AppendRejects(path, func(file *os.File) io.Writer { return output.Guarded(file) })
}

// mostShown is how many rejects are printed to standard error when no file takes them.
const mostShown = 10

// shownRejects prints the first rejected records.
type shownRejects struct {
	stderr io.Writer
	count  int
}

func (r *shownRejects) Add(reject ingest.Reject) error {
	if r.count++; r.count <= mostShown {
		place := reject.Error
		if reject.Field != "" {
			place = reject.Field + " " + place
		}
		say(r.stderr, "rejected: %s line %d: %s", reject.Source, reject.Line, place)
	}
	return nil
}

func (r *shownRejects) AddNow(reject ingest.Reject) error { return r.Add(reject) }

func (*shownRejects) Flush() error { return nil }

func (r *shownRejects) Close() error {
	if r.count > mostShown {
		say(r.stderr, "rejected: %d more; --rejects FILE keeps all of them", r.count-mostShown)
	}
	return nil
}
