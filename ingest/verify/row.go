package verify

import (
	"errors"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/schema"
)

// A Group is what is compared at once: the records of one kind of an organization, of one UTC day of
// their event clock. Agents have no event clock; their day is empty.
type Group struct {
	Organization schema.OrganizationID `json:"organization_id"`
	Kind         normalize.Kind        `json:"record"`
	Day          string                `json:"day,omitzero"` // YYYY-MM-DD
}

// A row is a normalized record, as far as a comparison needs it.
type row struct {
	Group
	id      uuid.UUID
	version int64 // updated_at in Unix milliseconds; 0 of attributions, which have one version
	// of runs: version and status, which decide between versions under several clocks (schema.SupersededRuns)
	rank  uint64
	clock int64  // event clock in Unix milliseconds; 0 of agents
	hash  uint64 // of all fields: XXH64 of the text that columnsOf builds in SQL
}

// A hasher turns normalized records into rows. It is not safe for concurrent use.
type hasher struct {
	normalizer *normalize.Normalizer
	text       []byte
	day        string
	dayNumber  int64
	purged     *purged.List // what of it stays out is hashed as the store has it
}

func newHasher(list *purged.List) *hasher {
	return &hasher{normalizer: normalize.NewNormalizer(), day: "1970-01-01", purged: list}
}

// errPurged is the error of a record that stays out because its person was purged.
var errPurged = errors.New("the person was purged")

// row normalizes a raw record. The error is a *normalize.Error or errPurged.
func (h *hasher) row(raw *normalize.Raw) (row, error) {
	h.text = h.text[:0]
	r := row{Group: Group{Kind: raw.Kind}}
	switch raw.Kind {
	case normalize.KindAgent:
		a, err := h.normalizer.Agent(raw)
		if err != nil {
			return r, err
		}
		r.Organization, r.id, r.version = a.OrganizationID, a.AgentID, a.UpdatedAt
		h.addNumber(a.UpdatedAt)
		if a.DeletedAt == nil {
			h.text = append(h.text, "-|"...)
		} else {
			h.addNumber(*a.DeletedAt)
		}
		h.addText(a.Slug)
		h.addText(&a.Name)
	case normalize.KindRun:
		run, err := h.normalizer.Run(raw)
		if err != nil {
			return r, err
		}
		h.purged.Anonymize(&run)
		r.Organization, r.id, r.version, r.Day = run.OrganizationID, run.RunID, run.UpdatedAt, h.dayOf(run.CreatedAt)
		r.rank, r.clock = run.State()>>schema.StateStatusShift, run.CreatedAt
		h.addNumber(run.CreatedAt)
		h.text = append(strconv.AppendUint(h.text, run.State(), 10), '|')
		h.addID(run.AgentID)
		if run.ParentRunID == nil {
			h.text = append(h.text, "-|"...)
		} else {
			h.addID(*run.ParentRunID)
		}
		h.addText(run.InitiatorIdentifier)
		h.addText(run.InitiatorName)
	default:
		a, err := h.normalizer.Attribution(raw)
		if err != nil {
			return r, err
		}
		if h.purged.Excludes(&a) != nil {
			return r, errPurged
		}
		r.Organization, r.id, r.Day = a.OrganizationID, a.AttributionID, h.dayOf(a.OccurredAt)
		r.clock = a.OccurredAt
		h.addNumber(a.OccurredAt)
		h.addID(a.RunID)
		h.addID(a.AgentID)
		h.addText(&a.UserIdentifier)
		h.addText(a.UserName)
		activity, initiation := a.Codes()
		h.text = append(strconv.AppendUint(h.text, activity, 10), '|')
		h.text = append(strconv.AppendUint(h.text, initiation, 10), '|')
		h.addText(&a.Source)
	}
	h.addID(r.id)
	r.hash = xxhash.Sum64(h.text)
	return r, nil
}

func (h *hasher) addNumber(n int64) { h.text = append(strconv.AppendInt(h.text, n, 10), '|') }

func (h *hasher) addID(id uuid.UUID) { h.text = append(append(h.text, id.String()...), '|') }

// addText writes a text after its length in bytes, so that no text can pass for another field.
func (h *hasher) addText(text *string) {
	if text == nil {
		h.text = append(h.text, "-|"...)
		return
	}
	h.text = append(strconv.AppendInt(h.text, int64(len(*text)), 10), ':')
	h.text = append(append(h.text, *text...), '|')
}

const millisPerDay = 24 * 60 * 60 * 1000

// dayOf is the UTC day of an instant; neighbours often have the same.
func (h *hasher) dayOf(ms int64) string {
	number := ms / millisPerDay
	if ms%millisPerDay < 0 {
		number--
	}
	if number != h.dayNumber {
		h.dayNumber, h.day = number, time.UnixMilli(ms).UTC().Format(time.DateOnly)
	}
	return h.day
}
