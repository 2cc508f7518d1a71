// Package normalize has the rules of the record table (contract 3): it turns one record as it was
// written into the row that is stored, or says which field breaks which rule. It is pure.
package normalize

import (
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// A Kind is the kind of a record: the value of its field "record".
type Kind string

const (
	KindAgent       Kind = "agent"
	KindRun         Kind = "run"
	KindAttribution Kind = "attribution"
)

// Kinds are all kinds.
var Kinds = []Kind{KindAgent, KindRun, KindAttribution}

// An Instant is a time as the store keeps it: milliseconds since 1970-01-01 in UTC, what is finer cut
// off. Batches contain millions of them.
type Instant = int64

// An Agent is one version of a task agent.
type Agent struct {
	OrganizationID schema.OrganizationID
	AgentID        uuid.UUID
	Name           string
	Slug           *string
	DeletedAt      *Instant
	UpdatedAt      Instant // the version
}

// A Run is one version of a run.
type Run struct {
	OrganizationID      schema.OrganizationID
	RunID               uuid.UUID
	CreatedAt           Instant // event clock; never changes for a run
	AgentID             uuid.UUID
	RunKind             string
	ParentRunID         *uuid.UUID
	Status              string
	InitiatorIdentifier *string // normalized
	InitiatorName       *string
	InitiatorType       *string
	UpdatedAt           Instant // the version
}

// An Attribution is an immutable attribution record.
type Attribution struct {
	OrganizationID    schema.OrganizationID
	AttributionID     uuid.UUID
	RunID             uuid.UUID
	AgentID           uuid.UUID
	UserIdentifier    string // normalized
	UserName          *string
	ActivityType      string
	RunInitiationType string
	Source            string
	OccurredAt        Instant // event clock
}

// An Error says why a record was rejected.
type Error struct {
	Field  string // empty where no field can be named
	Reason string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}
