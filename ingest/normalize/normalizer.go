package normalize

import (
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// A Normalizer applies the rules to one record after another. It remembers texts that recur, of
// people and organizations above all, so that a million records of a thousand people need a thousand texts.
// It is not safe for concurrent use.
type Normalizer struct {
	texts         memory[*string]
	people        memory[*string] // as written -> normalized; nil where blank
	organizations memory[schema.OrganizationID]
	last          schema.OrganizationID // of organizations

	raw   *Raw
	fault *Error // the first one of the record
}

// NewNormalizer returns a Normalizer that remembers nothing.
func NewNormalizer() *Normalizer { return &Normalizer{} }

// Agent returns the agent of a raw record of KindAgent. The error is an *Error.
func (n *Normalizer) Agent(raw *Raw) (Agent, error) {
	n.begin(raw)
	return Agent{
		OrganizationID: n.organization(0),
		AgentID:        n.id(1),
		Name:           *n.text(2, 0, maxName, required),
		Slug:           n.text(3, 1, maxSlug, nullable),
		DeletedAt:      n.optionalInstant(4),
		UpdatedAt:      n.instant(5),
	}, n.result()
}

// Run returns the run of a raw record of KindRun. The error is an *Error.
func (n *Normalizer) Run(raw *Raw) (Run, error) {
	n.begin(raw)
	run := Run{
		OrganizationID:      n.organization(0),
		RunID:               n.id(1),
		CreatedAt:           n.instant(2),
		AgentID:             n.id(3),
		RunKind:             runKinds[0],
		ParentRunID:         n.optionalID(5),
		Status:              *n.oneOf(6, statuses, required),
		InitiatorIdentifier: n.initiator(7),
		InitiatorName:       n.text(8, 0, maxName, nullable),
		InitiatorType:       n.oneOf(9, initiatorTypes, nullable),
		UpdatedAt:           n.instant(10),
	}
	if kind := n.oneOf(4, runKinds, nullable); kind != nil {
		run.RunKind = *kind
	}
	return run, n.result()
}

// Attribution returns the attribution of a raw record of KindAttribution. The error is an *Error.
func (n *Normalizer) Attribution(raw *Raw) (Attribution, error) {
	n.begin(raw)
	return Attribution{
		OrganizationID:    n.organization(0),
		AttributionID:     n.id(1),
		RunID:             n.id(2),
		AgentID:           n.id(3),
		UserIdentifier:    n.person(4),
		UserName:          n.text(5, 0, maxName, nullable),
		ActivityType:      *n.oneOf(6, activityTypes, required),
		RunInitiationType: *n.oneOf(7, initiations, required),
		Source:            *n.text(8, 1, maxSource, required),
		OccurredAt:        n.instant(9),
	}, n.result()
}

// Check returns why a raw record breaks a rule, an *Error, or nil.
func (n *Normalizer) Check(raw *Raw) (err error) {
	switch raw.Kind {
	case KindAgent:
		_, err = n.Agent(raw)
	case KindRun:
		_, err = n.Run(raw)
	default:
		_, err = n.Attribution(raw)
	}
	return err
}

func (n *Normalizer) begin(raw *Raw) { n.raw, n.fault = raw, nil }

func (n *Normalizer) result() error {
	if n.fault != nil {
		return n.fault
	}
	return nil
}

// Wrong values are zero; the record is not used then.
var (
	noText = new(string)
	noID   uuid.UUID
)

// The bounds of the memory of one kind of texts: how many, and their bytes with those of their values. At either one
// what was remembered is forgotten.
const (
	maxRemembered      = 1 << 16
	maxRememberedBytes = 4 << 20
)

// A memory has a value for every text it met lately.
type memory[V any] struct {
	values map[string]V
	bytes  int
}

func (m *memory[V]) get(text []byte) (value V, ok bool) {
	value, ok = m.values[string(text)]
	return value, ok
}

// add remembers a text, whose value has so many bytes of its own.
func (m *memory[V]) add(text string, value V, bytes int) V {
	if m.values == nil || len(m.values) >= maxRemembered || m.bytes >= maxRememberedBytes {
		*m = memory[V]{values: map[string]V{}}
	}
	m.values[text] = value
	m.bytes += len(text) + bytes
	return value
}
