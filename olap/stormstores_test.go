package olap_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/olaptest"
)

// storeNext stores what comes next, or something once more.
func (s *storm) storeNext() {
	var records olaptest.Records
	name := "store"
	switch {
	case len(s.toStore) > 0 && !s.oneIn(8):
		records, s.toStore = s.toStore[0], s.toStore[1:]
	case len(s.stored) > 0:
		name, records = "store twice", s.stored[s.IntN(len(s.stored))]
	}
	records = s.withoutPurged(records)
	if len(records.Agents)+len(records.Runs)+len(records.Attributions) == 0 {
		return
	}
	if !s.inserting && !s.broken && s.purging == 0 && s.oneIn(6) {
		s.putLate(records)
		return
	}
	s.paths[name]++
	s.say("%s %+v", name, records)
	s.stored = append(s.stored, records)
	s.put(records)
}

// putLate stores records with an insert that is in flight for some steps. Meanwhile the clock does not jump, nor does
// time pass: for how long the insert has been in flight is real time.
func (s *storm) putLate(records olaptest.Records) {
	s.inserting = true
	stamped := s.clock()
	one := s.newTask("store, in flight", olaptest.Hold(s.store), func() { s.inserting = false })
	one.until += 1 + s.IntN(6)
	one.goesOn = func() {
		s.stored = append(s.stored, records)
		s.truth.Store(records, stamped)
	}
	s.say("%s %+v", one.name, records)
	s.tasks = append(s.tasks, one)
	go func() {
		defer close(one.done)
		olaptest.LoadHeld(s, s.store, records, func() { close(one.reached); <-one.open })
	}()
	s.await(one)
}

// put stores records.
func (s *storm) put(records olaptest.Records) {
	s.truth.Store(records, s.clock())
	olaptest.Load(s, s.store, records)
	if now := s.clock(); s.broken && len(records.Runs)+len(records.Attributions) > 0 && now.After(s.unresolved) {
		s.unresolved = now
	}
}

// withoutPurged leaves out what writers leave out: records of people who were purged.
func (s *storm) withoutPurged(r olaptest.Records) olaptest.Records {
	r.Attributions = slices.DeleteFunc(slices.Clone(r.Attributions), func(a olaptest.Attribution) bool {
		return s.purged[a.Organization+" "+a.Identifier]
	})
	r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(run olaptest.Run) bool {
		return run.Identifier != nil && s.purged[run.Organization+" "+*run.Identifier]
	})
	return r
}

// failInsert begins an insert of which some months become visible before it fails.
func (s *storm) failInsert() {
	if s.purging > 0 || s.broken || s.inserting {
		return
	}
	ctx := context.Background()
	var ids []string
	failed := map[string]olaptest.Run{}
	first := time.Date(2022, 9, 12, 12, 0, 0, 0, time.UTC)
	agent := olaptest.ID(1)
	for n := range 4 {
		run := olaptest.Run{Organization: "acme", ID: uuid.New(), CreatedAt: first.AddDate(0, n, 0), AgentID: agent,
			Kind: "agent", Status: "FAILED", UpdatedAt: first}
		ids = append(ids, run.ID.String())
		failed[run.ID.String()] = run
	}
	before := s.clock()
	insert := func(fails, settings string) error {
		return s.store.Exec(ctx, "INSERT INTO runs (organization_id, run_id, created_at, agent_id, kind, status, updated_at)"+
			" SELECT 'acme', toUUID(['"+strings.Join(ids, "', '")+"'][number + 1]),"+
			" toDateTime64('2022-09-12 12:00:00', 3, 'UTC') + toIntervalMonth(number), toUUID('"+agent.String()+"'),"+
			" 'agent', 'FAILED', toDateTime64('2022-09-12 12:00:00', 3, 'UTC') FROM numbers(4) WHERE "+fails+settings)
	}
	var err error
	if s.oneIn(2) { // a view fails
		s.exec("ALTER TABLE insert_counters ADD CONSTRAINT never CHECK source != 'runs'")
		err = insert("1", "")
		s.exec("ALTER TABLE insert_counters DROP CONSTRAINT never")
	} else {
		err = insert(fmt.Sprintf("throwIf(number = %d) = 0", 1+s.IntN(3)), " SETTINGS max_threads = 1, max_block_size = 1,"+
			" min_insert_block_size_rows = 1, min_insert_block_size_bytes = 1")
	}
	if err == nil {
		s.Fatal("an insert did not fail")
	}
	var visible []string
	err = s.store.QueryRow(ctx, "SELECT groupArray(toString(run_id)) FROM runs WHERE organization_id = 'acme'"+
		" AND toString(run_id) IN ('"+strings.Join(ids, "', '")+"')").Scan(&visible)
	if err != nil {
		s.Fatal(err)
	}
	var records olaptest.Records
	for _, id := range visible {
		records.Runs = append(records.Runs, failed[id])
	}
	s.paths["store fails"]++
	if len(visible) > 0 {
		s.paths["rows of a failed insert"]++
	}
	s.say("an insert fails: %d rows are visible", len(visible))
	s.truth.Store(records, before)
}
