package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
)

// A Status is the state of a worker. It is safe for concurrent use.
type Status struct {
	mu       sync.Mutex
	kinds    map[normalize.Kind]*KindStatus
	retries  int64
	replaced int64
	lastDiff *ReconcileStatus
	failures int       // of full comparisons since the last one that ended
	failure  string    // the last one
	compared time.Time // when the last full comparison ended, or the first one began; zero before that
	now      func() time.Time
}

// A KindStatus is the state of the copying of one kind since the worker's start.
type KindStatus struct {
	CaughtUp bool `json:"caught_up"`
	// age of the newest instant up to which the source was read to its end; null before that
	LagSeconds *float64 `json:"lag_seconds"`
	// CertainUntil is the instant before which no row has changed that is not stored. After it, transactions
	// that are still open may commit rows with times in the past. Null when nothing is certain.
	CertainUntil *time.Time `json:"certain_until"`
	WaitsFor     string     `json:"waits_for,omitzero"` // the oldest of those transactions
	// Checkpoint is the instant from which a worker that is started now would go on, about; null before the first one.
	Checkpoint *time.Time `json:"checkpoint"`
	Mapping    string     `json:"mapping"` // fingerprint of the SELECT that the checkpoint belongs to
	Stored     int64      `json:"stored"`  // records that ClickHouse acknowledged
	Batches    int64      `json:"batches"`
	Rejected   int64      `json:"rejected"`
	Purged     int64      `json:"purged"`            // that stay out, or runs without initiator: the person was purged
	PerSecond  float64    `json:"stored_per_second"` // over the last minute
	seenUntil  time.Time
	minute     []sample
}

// A sample is what had been stored at a time.
type sample struct {
	at     time.Time
	stored int64
}

// A ReconcileStatus is what the last full comparison found.
type ReconcileStatus struct {
	EndedAt  time.Time `json:"ended_at"`
	Compared int64     `json:"days_compared"` // days of organizations and kinds
	Differed int64     `json:"days_differed"`
	Repaired int64     `json:"records_copied_again"`
	Replaced int64     `json:"records_replaced"`          // stored in a version that the source does not have
	Missing  int64     `json:"records_missing_in_source"` // stored, but gone from the source
	Deleted  int64     `json:"records_deleted"`
	Refused  int64     `json:"records_deletion_refused"`  // more than may be deleted at once
	Invalid  int64     `json:"records_invalid_in_source"` // stored, and there, but breaking a rule
	Rejected int64     `json:"records_rejected"`          // of the source, that break a rule
}

// A Report is a Status at one time.
type Report struct {
	Kinds     map[normalize.Kind]KindStatus `json:"kinds"`
	Retries   int64                         `json:"retries"`
	Replaced  int64                         `json:"records_replaced"` // by all full comparisons
	Reconcile *ReconcileStatus              `json:"last_reconcile"`
	// Failures counts attempts at a full comparison that failed since the last one that ended; Failure says why.
	Failures int    `json:"reconcile_failures"`
	Failure  string `json:"reconcile_failure,omitzero"`
}

// rateWindow is the span of the rates.
const rateWindow = time.Minute

// NewStatus returns the status of a worker that has not begun; now is its clock.
func NewStatus(now func() time.Time) *Status {
	s := &Status{kinds: map[normalize.Kind]*KindStatus{}, now: now}
	for _, kind := range normalize.Kinds {
		s.kinds[kind] = &KindStatus{}
	}
	return s
}

// Report returns the status now.
func (s *Status) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{
		Kinds: map[normalize.Kind]KindStatus{}, Retries: s.retries, Replaced: s.replaced, Reconcile: s.lastDiff,
		Failures: s.failures, Failure: s.failure,
	}
	now := s.now()
	for kind, k := range s.kinds {
		copied := *k
		if k.CaughtUp {
			lag := now.Sub(k.seenUntil).Seconds()
			copied.LagSeconds = &lag
		}
		k.trim(now)
		if len(k.minute) > 0 {
			copied.PerSecond = float64(k.Stored-k.minute[0].stored) / rateWindow.Seconds()
		}
		r.Kinds[kind] = copied
	}
	return r
}

func (k *KindStatus) trim(now time.Time) {
	for len(k.minute) > 0 && now.Sub(k.minute[0].at) > rateWindow {
		k.minute = k.minute[1:]
	}
}

// passed takes note that everything up to an instant was seen and stored, and what of it is certain.
func (s *Status) passed(kind normalize.Kind, seenUntil, certain time.Time, waitsFor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	k.CaughtUp, k.seenUntil = true, seenUntil
	k.CertainUntil, k.WaitsFor = nil, waitsFor
	if !certain.IsZero() {
		k.CertainUntil = &certain
	}
}

// setBack takes note that rows may have changed since an instant of the source's clock that are not stored.
func (s *Status) setBack(kind normalize.Kind, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[kind]; k.CertainUntil != nil && since.Before(*k.CertainUntil) {
		k.CertainUntil = &since
	}
}

func (s *Status) checkpoint(kind normalize.Kind, at position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k.Mapping = at.Mapping; !at.Until.IsZero() {
		k.Checkpoint = &at.Until
	}
}

func (s *Status) stored(kind normalize.Kind, stored, rejected int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	now := s.now()
	k.trim(now)
	k.minute = append(k.minute, sample{now, k.Stored})
	k.Stored += int64(stored)
	k.Rejected += int64(rejected)
	k.Batches++
}

// rejected takes note of records that a full comparison rejected.
func (s *Status) rejected(kind normalize.Kind, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind].Rejected += int64(n)
}

func (s *Status) retried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries++
}

func (s *Status) excluded(kind normalize.Kind, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind].Purged += int64(n)
}

func (s *Status) addReplaced(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaced += int64(n)
}

func (s *Status) reconciled(r ReconcileStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastDiff, s.failures, s.failure, s.compared = &r, 0, "", s.now()
}

// comparing takes note that full comparisons begin.
func (s *Status) comparing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compared = s.now()
}

// comparedAge is how long ago the last full comparison ended, or the first one began; negative where there is none.
func (s *Status) comparedAge() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compared.IsZero() {
		return -1
	}
	return s.now().Sub(s.compared)
}

func (s *Status) reconcileFailed(why string) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retries++
	s.failures++
	s.failure = why
	return s.failures
}

// failuresUnready is how many full comparisons fail, one after another, before a worker is not ready: an outage is
// over by then, as a rule.
const failuresUnready = 3

// Ready returns why a worker is not ready, or nil: it has caught up with its source, and full comparisons do not fail.
func (s *Status) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range normalize.Kinds {
		if !s.kinds[kind].CaughtUp {
			return fmt.Errorf("the %s records are still being copied for the first time", kind)
		}
	}
	if s.failures >= failuresUnready {
		return fmt.Errorf("the full comparison has failed %d times: %s", s.failures, s.failure)
	}
	return nil
}
