package normalize

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Contract 3: every field is taken as it was given.
func TestTakesWhatIsGiven(t *testing.T) {
	id := func(last string) uuid.UUID { return uuid.MustParse("0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b" + last) }
	at := func(text string) Instant {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	parent, deleted := id("13"), at("2026-01-30T08:00:00.25Z")
	for line, want := range map[string]any{
		with(with(agentLine, "slug", `"support"`), "deleted_at", `"2026-01-30T08:00:00.25Z"`): Agent{
			OrganizationID: "acme", AgentID: id("10"), Name: "Support", Slug: new("support"), DeletedAt: &deleted,
			UpdatedAt: at("2026-01-31T09:30:00.123+02:00")},
		with(with(with(with(with(runLine, "kind", `"phone"`), "parent_run_id", `"`+parent.String()+`"`),
			"initiator_identifier", `"+15550100"`), "initiator_name", `"Bo"`), "initiator_type", `"external"`): Run{
			OrganizationID: "acme", RunID: id("11"), CreatedAt: at("2026-01-31T09:30:00Z"), AgentID: id("10"),
			RunKind: "phone", ParentRunID: &parent, Status: "COMPLETED", InitiatorIdentifier: new("+15550100"),
			InitiatorName: new("Bo"), InitiatorType: new("external"), UpdatedAt: at("2026-01-31T09:31:00Z")},
		with(attrLine, "user_name", `"Ada"`): Attribution{
			OrganizationID: "acme", AttributionID: id("12"), RunID: id("11"), AgentID: id("10"),
			UserIdentifier: "ada@example.com", UserName: new("Ada"), ActivityType: "initiated",
			RunInitiationType: "human", Source: "web", OccurredAt: at("2026-01-31T09:30:00Z")},
	} {
		if got, err := read([]byte(line)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nbecame %+v (%v)\n  want %+v", line, got, err, want)
		}
	}
}

// A raw record is read into again and again: nothing is left in it of the record before.
func TestNothingIsLeftOfTheRecordBefore(t *testing.T) {
	for name, line := range map[string]string{
		"as most lines are": runLine,
		"with an escape":    with(runLine, "organization_id", `"\u0061cme"`),
		"rejected before":   `{"source":"a","line":1,"field":"","error":"no","record":` + runLine + `}`,
	} {
		var fresh, used Raw
		for raw, first := range map[*Raw]string{&fresh: line, &used: with(runLine, "initiator_name", `"Bo"`)} {
			if err := ReadJSON([]byte(first), raw); err != nil {
				t.Fatal(err)
			}
		}
		if err := ReadJSON([]byte(line), &used); err != nil || !reflect.DeepEqual(used, fresh) {
			t.Errorf("%s: %s (%v), want %s", name, used.Values, err, fresh.Values)
		}
	}
}
