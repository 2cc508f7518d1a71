package push

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
)

// Records are what was read of one body. They are of one organization.
type Records struct {
	Organization schema.OrganizationID
	Lines        int      // that are not blank
	Rejected     int      // of Lines
	Rejects      []Reject // in order, the first MaxRejects of Rejected
	Bytes        int64    // of the unpacked text

	left part // what waits to be stored
	done chan error

	movedSince time.Time // runs moved (write.Moved) of what was stored since; zero for none
}

// Stored is how many lines are stored, once Store has returned.
func (r *Records) Stored() int { return r.Lines - r.Rejected }

// A Reject is a line that breaks a rule.
type Reject struct {
	Line  int    `json:"line"`  // from 1; blank lines count
	Field string `json:"field"` // empty where no field can be named; at most maxFieldBytes of it
	Error string `json:"error"`
}

// MaxRejects is how many rejects of a body are named, inclusive. Who needs more sends the lines after them again.
const MaxRejects = 1000

// maxFieldBytes is how much is kept of the name of a field, which is the sender's if the record has no such field.
const maxFieldBytes = 64

// reject rejects a line. It may be one before others.
func (r *Records) reject(line int, fault error) {
	r.Rejected++
	at, _ := slices.BinarySearchFunc(r.Rejects, line, func(x Reject, line int) int { return cmp.Compare(x.Line, line) })
	if at == MaxRejects {
		return
	}
	reject := Reject{Line: line, Error: fault.Error()}
	if broken, ok := errors.AsType[*normalize.Error](fault); ok {
		reject.Field, reject.Error = broken.Field, broken.Reason
	}
	if len(reject.Field) > maxFieldBytes {
		reject.Field = strings.ToValidUTF8(reject.Field[:maxFieldBytes], "") + "…"
	}
	r.Rejects = slices.Insert(r.Rejects, at, reject)
	r.Rejects = r.Rejects[:min(len(r.Rejects), MaxRejects)]
}
