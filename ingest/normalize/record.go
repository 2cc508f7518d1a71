// Package normalize holds the rules of the record table (contract 3): it turns one record as it was
// written into the row that is stored, or says which field breaks which rule. It is pure.
package normalize

import (
	"time"

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

// A Record is an *Agent, a *Run or an *Attribution that keeps every rule.
type Record interface{ Kind() Kind }

// An Agent is one version of a task agent. Times are in UTC, cut to the millisecond.
type Agent struct {
	OrganizationID schema.OrganizationID
	AgentID        uuid.UUID
	Name           string
	Slug           *string
	DeletedAt      *time.Time
	UpdatedAt      time.Time // the version
}

// A Run is one version of a run. Times are in UTC, cut to the millisecond.
type Run struct {
	OrganizationID      schema.OrganizationID
	RunID               uuid.UUID
	CreatedAt           time.Time // event clock; never changes for a run
	AgentID             uuid.UUID
	RunKind             string
	ParentRunID         *uuid.UUID
	Status              string
	InitiatorIdentifier *string // normalized
	InitiatorName       *string
	InitiatorType       *string
	UpdatedAt           time.Time // the version
}

// An Attribution is an immutable attribution record. Times are in UTC, cut to the millisecond.
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
	OccurredAt        time.Time // event clock
}

func (*Agent) Kind() Kind       { return KindAgent }
func (*Run) Kind() Kind         { return KindRun }
func (*Attribution) Kind() Kind { return KindAttribution }

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
