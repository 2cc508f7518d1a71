package members

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runlens/runlens/http/client"
)

var example = &client.Catalog{CatalogVersion: "1.2", Models: []client.Model{{
	Name: "agent_runs", Description: "Counts runs.", Grain: "One run.", EventClock: "createdAt",
	Metrics: []client.Metric{
		{Name: "run_count", Type: "number", Description: "How many runs.", Additive: true},
		{Name: "run_success_rate", Type: "number", Description: "The share.",
			Deprecated: &client.Deprecated{Since: "1.1", Note: "Use another."}},
	},
	Dimensions: []client.Dimension{
		{Name: "agent_id", Type: "string", Description: "The agent, which has a name that may change at any time.",
			Companions: []client.Companion{{Name: "agent_name", Type: "string", Description: "Its name."}}},
		{Name: "day", Type: "date", Description: "The day."},
	},
}}}

func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `Catalog version 1.2

agent_runs
  Counts runs.
  A row: One run.
  A range selects by createdAt.

  METRIC            TYPE    UNIT               ADDITIVE  DESCRIPTION
  run_count         number  count              yes       How many runs.
  run_success_rate  number  ratio from 0 to 1  no        The share. Deprecated since 1.1: Use another.

  DIMENSION     TYPE    FILTERS  DESCRIPTION
  agent_id      string  eq, in   The agent, which has a name that may change at any time.
    agent_name  string  -        Its name.
  day           date    eq, in   The day.
`,
		// The metrics need 57 columns beside their descriptions, which get the least width of 24; the dimensions need 33,
		// which leaves 31: "The agent, which has a name that" would be 32.
		64: `Catalog version 1.2

agent_runs
  Counts runs.
  A row: One run.
  A range selects by createdAt.

  METRIC            TYPE    UNIT               ADDITIVE  DESCRIPTION
  run_count         number  count              yes       How many runs.
  run_success_rate  number  ratio from 0 to 1  no        The share. Deprecated
                                                         since 1.1: Use another.

  DIMENSION     TYPE    FILTERS  DESCRIPTION
  agent_id      string  eq, in   The agent, which has a name
                                 that may change at any time.
    agent_name  string  -        Its name.
  day           date    eq, in   The day.
`,
	} {
		var got strings.Builder
		if err := Describe(example).Write(&got, width); err != nil || got.String() != want {
			t.Errorf("width %d: %v\n%s\nwant\n%s", width, err, got.String(), want)
		}
	}
}

// The JSON has every field of the API's catalog, and the two that are added.
func TestJSON(t *testing.T) {
	got, err := json.Marshal(Describe(example))
	want := `{"catalogVersion":"1.2","models":[{"name":"agent_runs","description":"Counts runs.","grain":"One run.",` +
		`"eventClock":"createdAt","metrics":[{"name":"run_count","type":"number","description":"How many runs.",` +
		`"additive":true,"deprecated":null,"unit":"count"},{"name":"run_success_rate","type":"number",` +
		`"description":"The share.","additive":false,"deprecated":{"since":"1.1","note":"Use another."},` +
		`"unit":"ratio from 0 to 1"}],"dimensions":[{"name":"agent_id","type":"string",` +
		`"description":"The agent, which has a name that may change at any time.","companions":[{"name":"agent_name",` +
		`"type":"string","description":"Its name."}],"deprecated":null,"operators":["eq","in"]},{"name":"day",` +
		`"type":"date","description":"The day.","companions":null,"deprecated":null,"operators":["eq","in"]}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
