package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/runlens/runlens/schema"
)

// What a key sees is printed when it is made, rotated and listed, and wrong or empty values make none.
func TestKeysThatSeeLess(t *testing.T) {
	flags := store(t)
	const agent = "0b7e4d2c-0000-4000-8000-000000000001"
	made := keysCommand(t, flags, "keys", "create", "--org", "acme", "--domain", "Example.com", "--domain", "example.org",
		"--agent", strings.ToUpper(agent), "--days", "90", "--min-people", "5")
	want := map[string]any{"agents": []any{agent}, "domains": []any{"example.com", "example.org"}, "days": 90.0,
		"min_people": 5.0}
	rotated := keysCommand(t, flags, "keys", "rotate", made["key_id"].(string))
	for what, key := range map[string]map[string]any{"made": made, "rotated": rotated} {
		if !reflect.DeepEqual(key["restriction"], want) || !reflect.DeepEqual(key["scopes"], []any{"analytics:read"}) {
			t.Errorf("%s %v, want the restriction %v", what, key, want)
		}
	}
	plain := keysCommand(t, flags, "keys", "create", "--org", "acme")
	if _, there := plain["restriction"]; there {
		t.Errorf("made %v", plain)
	}
	code, out, stderr := command(t, "", append([]string{"keys", "list", "--org", "acme", "--output", "json"}, flags...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 3 {
		t.Fatalf("exit code %d\n%s%s", code, out, stderr)
	}
	for _, line := range lines {
		var key map[string]any
		must(t, json.Unmarshal([]byte(line), &key))
		if key["key_id"] == plain["key_id"] && key["restriction"] != nil ||
			key["key_id"] != plain["key_id"] && !reflect.DeepEqual(key["restriction"], want) {
			t.Errorf("listed %s", line)
		}
	}
	_, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme"}, flags...)...)
	if words := "agent " + agent + "; domain example.com, example.org; 90 days; groups of 5 people"; strings.Count(out,
		words) != 2 || !strings.Contains(out, "SEES") {
		t.Errorf("listed\n%s", out)
	}
	before := strings.Count(out, "\n")
	for says, args := range map[string][]string{
		"--agent: the value is":     {"--agent", ""},
		"--agent: \"support\"":      {"--agent", "support"},
		"--agent: \"" + agent + ",": {"--agent", agent + ","},
		"--person: the value is":    {"--person="},
		"--person: \"ada\"":         {"--person", "ada"},
		"--domain: \"\"":            {"--domain", " "},
		"--domain: \"a@b.test\"":    {"--domain", "a@b.test"},
		"--days: must be":           {"--days", "0"},
		"--days: must be 1":         {"--days=-1"},
		"--days":                    {"--days", ""},
		"--min-people: must":        {"--min-people", "0"},
		"--min-people: must be 2":   {"--min-people", "1"},
		"--min-people: a key for":   {"--min-people", "5", "--person", "ada@example.com"},
		"--scopes: a key that":      {"--days", "5", "--scopes", ""},
	} {
		code, out, stderr := command(t, "", append(append([]string{"keys", "create", "--org", "acme"}, args...), flags...)...)
		if code != exitUsage || !strings.Contains(stderr, says) || strings.Contains(out, "key:") {
			t.Errorf("%q: exit code %d, want %q\n%s%s", args, code, says, out, stderr)
		}
	}
	_, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme"}, flags...)...)
	if strings.Count(out, "\n") != before {
		t.Errorf("a key was made\n%s", out)
	}
}

func TestRestrictionInWords(t *testing.T) {
	for want, r := range map[string]*schema.Restriction{
		"all":                       nil,
		"domain a, b, c":            {Domains: []string{"a", "b", "c"}},
		"person a, b, c and 2 more": {People: []string{"a", "b", "c", "d", "e"}},
	} {
		if got := restrictionInWords(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Nothing about a person is in what the audit log has of a key.
func TestActionsOnRestrictedKeysNameNobody(t *testing.T) {
	restriction, err := schema.NewRestriction(schema.Restriction{People: []string{"ada@example.com"}})
	must(t, err)
	key := schema.APIKey{Scopes: []string{"analytics:read"}, KeyLimits: schema.KeyLimits{Restriction: restriction}}
	details, err := json.Marshal(actionOn("keys create", key).Details)
	if err != nil || strings.Contains(string(details), "ada") || !strings.Contains(string(details), `"people":1`) {
		t.Errorf("%s, %v", details, err)
	}
}
