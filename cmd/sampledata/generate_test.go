package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
)

var until = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func sample(t *testing.T, until time.Time) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := generate(&out, 1, until); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every record keeps the contract, and the sample has what a demonstration should show.
func TestSampleIsValidAndVaried(t *testing.T) {
	seen := map[string]int{}
	runs, attributions, agents := map[string]bool{}, map[string]bool{}, map[string]int{}
	var raw normalize.Raw
	normalizer := normalize.NewNormalizer()
	for line := range bytes.Lines(sample(t, until)) {
		valid := func(err error) {
			if err != nil {
				t.Fatalf("%v\n%s", err, line)
			}
		}
		valid(normalize.ReadJSON(bytes.TrimSuffix(line, []byte("\n")), &raw))
		switch raw.Kind {
		case normalize.KindAgent:
			r, err := normalizer.Agent(&raw)
			valid(err)
			agents[r.AgentID.String()]++
			if r.DeletedAt != nil {
				seen["deleted agent"]++
			}
		case normalize.KindRun:
			r, err := normalizer.Run(&raw)
			valid(err)
			runs[r.RunID.String()] = true
			seen["organization "+string(r.OrganizationID)]++
			seen["status "+r.Status]++
			seen["kind "+r.RunKind]++
			if r.InitiatorIdentifier == nil {
				seen["initiator without identifier"]++
			}
			if r.InitiatorType != nil {
				seen["type "+*r.InitiatorType]++
			}
			if r.UpdatedAt > until.UnixMilli() {
				t.Fatalf("a run of the future: %s", line)
			}
		default:
			r, err := normalizer.Attribution(&raw)
			valid(err)
			attributions[r.AttributionID.String()] = true
			seen["activity "+r.ActivityType]++
			seen["initiation "+r.RunInitiationType]++
			if r.UserIdentifier[0] == '+' {
				seen["phone number"]++
			}
		}
	}
	for _, wanted := range []string{
		"organization acme", "organization globex", "organization initech", "organization umbrella",
		"status COMPLETED", "status FAILED", "status CANCELLED", "status RUNNING", "status PENDING",
		"status WAITING_FOR_SLOT",
		"status CANCELLING", "status AWAITING_REPLY", "status SLEEPING", "status PAUSING", "status PAUSED",
		"kind agent", "kind sub_agent", "kind browser", "kind phone", "kind inbound_phone", "kind platform",
		"type internal", "type external", "type automated", "type unknown", "initiator without identifier",
		"deleted agent", "phone number",
		"activity initiated", "activity associated", "activity interacted", "initiation human", "initiation automated",
		"initiation unknown",
	} {
		if seen[wanted] == 0 {
			t.Errorf("the sample has no %s", wanted)
		}
	}
	if len(runs) < 80_000 || len(runs) > 130_000 || len(attributions) < 150_000 || len(attributions) > 250_000 {
		t.Errorf("%d runs and %d attribution records, want about 100,000 and 200,000", len(runs), len(attributions))
	}
	t.Logf("%d runs, %d attribution records, %d agents", len(runs), len(attributions), len(agents))
}

// Running the demonstration on a later day must only add records.
func TestSampleIsDeterministicAndGrows(t *testing.T) {
	today, tomorrow := sample(t, until), sample(t, until.AddDate(0, 0, 1))
	if !bytes.Equal(today, sample(t, until)) {
		t.Error("the same seed and time give other bytes")
	}
	later := map[string]bool{}
	for line := range bytes.Lines(tomorrow) {
		later[string(line)] = true
	}
	// The oldest day leaves the window, with what its runs did on later days, and a run that was
	// active is recorded as ended only.
	gone, oldest := 0, until.AddDate(0, -historyMonths, 30).Format(time.DateOnly)
	var raw normalize.Raw
	normalizer := normalize.NewNormalizer()
	day := func(at normalize.Instant) string { return time.UnixMilli(at).UTC().Format(time.DateOnly) }
	for line := range bytes.Lines(today) {
		if err := normalize.ReadJSON(bytes.TrimSuffix(line, []byte("\n")), &raw); err != nil {
			t.Fatal(err)
		}
		if later[string(line)] {
			continue
		}
		switch raw.Kind {
		case normalize.KindRun:
			r, err := normalizer.Run(&raw)
			if err != nil ||
				day(r.CreatedAt) >= oldest && (r.Status == "COMPLETED" || r.Status == "FAILED" || r.Status == "CANCELLED") {
				gone++
			}
		case normalize.KindAttribution:
			if r, err := normalizer.Attribution(&raw); err != nil || day(r.OccurredAt) >= oldest {
				gone++
			}
		}
	}
	if gone > 0 {
		t.Errorf("%d records of earlier days are not in the later sample", gone)
	}
}
