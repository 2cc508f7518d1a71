package normalize

import (
	"slices"

	"github.com/runlens/runlens/schema"
)

// State packs a run's version, status, kind and initiator type as the column runs.state does
// (schema/DESIGN.md), computed here a second time so that what is stored can be held against it.
func (r *Run) State() uint64 {
	state := uint64(r.UpdatedAt+schema.StateEpochOffsetMillis) << schema.StateVersionShift
	state |= code(statuses, r.Status) << schema.StateStatusShift
	state |= code(runKinds, r.RunKind) << schema.StateKindShift
	if r.InitiatorType != nil {
		state |= code(initiatorTypes, *r.InitiatorType)
	}
	return state
}

// Codes returns the codes of the activity and of the initiation type, as their columns store them.
func (a *Attribution) Codes() (activity, initiation uint64) {
	return code(activityTypes, a.ActivityType), code(initiations, a.RunInitiationType)
}

// code is the number of a text among the allowed ones, from 1.
func code(allowed []string, text string) uint64 { return uint64(slices.Index(allowed, text) + 1) }
