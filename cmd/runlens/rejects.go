package main

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/schema"
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

// mostShown is how many rejects are printed to standard error when no file takes them; a worker logs as many a minute.
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

// loggedRejects logs the first rejected records of each minute, of a process that never comes to an end. It has its
// callers wait for each other (sharedRejects).
type loggedRejects struct {
	logger *slog.Logger
	began  time.Time // of the minute
	count  int       // within it
}

func (r *loggedRejects) Add(reject ingest.Reject) error {
	if now := time.Now(); now.Sub(r.began) >= time.Minute {
		r.logRest()
		r.began, r.count = now, 0
	}
	if r.count++; r.count <= mostShown {
		organization, id := identified(reject)
		r.logger.Warn("rejected a record", "source", reject.Source, "organization", organization, "id", id,
			"field", reject.Field, "error", reject.Error)
	}
	return nil
}

func (r *loggedRejects) AddNow(reject ingest.Reject) error { return r.Add(reject) }

func (*loggedRejects) Flush() error { return nil }

func (r *loggedRejects) Close() error {
	r.logRest()
	return nil
}

func (r *loggedRejects) logRest() {
	if r.count > mostShown {
		r.logger.Warn("rejected more records; --rejects FILE keeps all of them", "count", r.count-mostShown)
	}
}

// identified are the organization and the id of a rejected record; empty where they break a rule themselves. What else
// it has may identify a person.
func identified(reject ingest.Reject) (organization schema.OrganizationID, id string) {
	var record struct {
		Organization string `json:"organization_id"`
		Run          string `json:"run_id"`
		Attribution  string `json:"attribution_id"`
		Agent        string `json:"agent_id"`
	}
	if json.Unmarshal(reject.Record, &record) != nil {
		return "", ""
	}
	organization, _ = schema.ParseOrganizationID(record.Organization)
	// A run names its agent too, and an attribution record both.
	parsed, err := uuid.Parse(cmp.Or(record.Attribution, record.Run, record.Agent))
	if err != nil {
		return organization, ""
	}
	return organization, parsed.String()
}
