package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Every line of a rejects file has the five fields of contract 3 and no other, whatever the format and the fault.
func TestRejectsHaveTheFieldsOfTheContract(t *testing.T) {
	var columns bytes.Buffer
	type agent struct {
		Organization string `parquet:"organization_id"`
		ID           string `parquet:"agent_id"`
		Name         string `parquet:"name"`
		UpdatedAt    string `parquet:"updated_at"`
	}
	must(t, parquet.Write(&columns, []agent{{Organization: "acme", ID: "no UUID"}}))
	want := []string{"error", "field", "line", "record", "source"}
	for name, c := range map[string]struct {
		content string
		args    []string
	}{
		"a value":       {`{"record":"agent"}` + "\n", nil},
		"no JSON":       {"{\n", nil},
		"a cell of CSV": {"organization_id,agent_id,name,updated_at\nacme,no UUID,,\n", []string{"--format", "csv"}},
		"no CSV":        {"organization_id,agent_id,name,updated_at\nacme\n", []string{"--format", "csv"}},
		"Parquet":       {columns.String(), []string{"--format", "parquet"}},
	} {
		rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
		code, _, stderr := command(t, c.content, append([]string{"ingest", "--dry-run", "--record", "agent",
			"--rejects", rejects, "-"}, c.args...)...)
		content, err := os.ReadFile(rejects)
		if code != exitRejected || err != nil {
			t.Fatalf("%s: ended with %d, %v: %s", name, code, err, stderr)
		}
		var line map[string]json.RawMessage
		if err := json.Unmarshal(content, &line); err != nil {
			t.Fatalf("%s: %s: %v", name, content, err)
		}
		if got := slices.Sorted(maps.Keys(line)); !slices.Equal(got, want) {
			t.Errorf("%s: a reject has %q, want %q", name, got, want)
		}
	}
}
