package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// The records of contract 3, with the fields in a readable order.
type (
	agentRecord struct {
		Record         string  `json:"record"`
		OrganizationID string  `json:"organization_id"`
		AgentID        string  `json:"agent_id"`
		Name           string  `json:"name"`
		Slug           string  `json:"slug,omitempty"`
		DeletedAt      *string `json:"deleted_at,omitempty"`
		UpdatedAt      string  `json:"updated_at"`
	}
	runRecord struct {
		Record              string `json:"record"`
		OrganizationID      string `json:"organization_id"`
		RunID               string `json:"run_id"`
		AgentID             string `json:"agent_id"`
		Kind                string `json:"kind"`
		ParentRunID         string `json:"parent_run_id,omitempty"`
		Status              string `json:"status"`
		InitiatorIdentifier string `json:"initiator_identifier,omitempty"`
		InitiatorName       string `json:"initiator_name,omitempty"`
		InitiatorType       string `json:"initiator_type,omitempty"`
		CreatedAt           string `json:"created_at"`
		UpdatedAt           string `json:"updated_at"`
	}
	attributionRecord struct {
		Record            string `json:"record"`
		OrganizationID    string `json:"organization_id"`
		AttributionID     string `json:"attribution_id"`
		RunID             string `json:"run_id"`
		AgentID           string `json:"agent_id"`
		UserIdentifier    string `json:"user_identifier"`
		UserName          string `json:"user_name,omitempty"`
		ActivityType      string `json:"activity_type"`
		RunInitiationType string `json:"run_initiation_type"`
		Source            string `json:"source"`
		OccurredAt        string `json:"occurred_at"`
	}
)

// A writer writes records, one in a hundred twice, as copying in real life does.
type writer struct {
	out     *json.Encoder
	repeats *rand.Rand
	err     error
}

func newWriter(out io.Writer, seed uint64) *writer {
	return &writer{out: json.NewEncoder(out), repeats: rand.New(rand.NewPCG(seed, 0))}
}

func (w *writer) write(record any) {
	if w.err == nil {
		w.err = w.out.Encode(record)
	}
	if w.err == nil && w.repeats.IntN(100) == 0 {
		w.err = w.out.Encode(record)
	}
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// newID draws a version 4 UUID.
func newID(r *rand.Rand) string {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}
