package schema

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const agentOne, agentTwo = "0b7e4d2c-0000-4000-8000-000000000001", "0b7e4d2c-0000-4000-8000-000000000002"

// What is stored of a restriction is one scope, which an older version does not know, and is read as it was.
func TestRestrictionIsStoredInTheScope(t *testing.T) {
	for stored, r := range map[string]Restriction{
		"analytics:read?agent=" + agentOne + "&agent=" + agentTwo: {Agents: []string{agentTwo, strings.ToUpper(agentOne),
			agentTwo}},
		"analytics:read?person=%2B15550100&person=o%27b%2C%0Ar%3F%40example.com": {People: []string{
			" O'b,\nr?@Example.com", "+15550100"}},
		"analytics:read?days=90&domain=example.com&min_people=5": {Domains: []string{"Example.com "}, Days: 90, MinPeople: 5},
	} {
		made, err := NewRestriction(r)
		if err != nil {
			t.Fatal(stored, err)
		}
		key := APIKey{Scopes: []string{"analytics:read"}, KeyLimits: KeyLimits{Restriction: made}}
		scopes, err := key.StoredScopes()
		if err != nil || len(scopes) != 1 || scopes[0] != stored {
			t.Errorf("stored as %q, %v, want %q", scopes, err, stored)
		}
		var read APIKey
		read.SetStoredScopes(scopes)
		if !reflect.DeepEqual(read.Scopes, key.Scopes) || !reflect.DeepEqual(read.Restriction, made) ||
			!reflect.DeepEqual(read.Access().Restriction(), made) {
			t.Errorf("%q is read as %q, %+v", stored, read.Scopes, read.Restriction)
		}
	}
}

// What cannot be read as a restriction permits nothing, and is stored again as it is.
func TestUnreadableRestrictionsPermitNothing(t *testing.T) {
	for _, stored := range [][]string{
		{"analytics:read?"}, {"analytics:read?agent="}, {"analytics:read?agent=x"}, {"analytics:read?days=0"},
		{"analytics:read?days=-1"}, {"analytics:read?days=+90"}, {"analytics:read?days=90&days=30"}, {"analytics:read?%zz"},
		{"analytics:read?channel=web&days=90"}, {"analytics:read?days=90;min_people=5"}, {"analytics:read?min_people=1"},
		{"analytics:read?min_people=5&person=%2B15550100"}, {"analytics:read?days=90", "analytics:read"},
		{"analytics:read", "analytics:read?days=90"}, {"analytics:read?days=90?"}, {"ingest:write?days=90"},
	} {
		var key APIKey
		key.SetStoredScopes(stored)
		for _, scope := range key.Scopes {
			if !strings.Contains(scope, restrictedBy) {
				t.Errorf("%q permits %q", stored, scope)
			}
		}
		again, err := key.StoredScopes()
		if key.Restriction != nil || err != nil || !reflect.DeepEqual(again, key.Scopes) {
			t.Errorf("%q is read as %+v and stored as %q, %v", stored, key.Restriction, again, err)
		}
	}
	var plain APIKey
	if plain.SetStoredScopes([]string{"analytics:read"}); plain.Restriction != nil || plain.Scopes[0] != "analytics:read" {
		t.Errorf("%+v", plain)
	}
}

func TestRestrictionsThatMakeNoSense(t *testing.T) {
	many := Restriction{}
	for i := range 48 {
		many.Agents = append(many.Agents, fmt.Sprintf("0b7e4d2c-0000-4000-8000-%012d", i))
	}
	for says, r := range map[string]Restriction{
		"nothing is restricted":              {},
		`agent: "support"`:                   {Agents: []string{"support"}},
		`agent: ""`:                          {Agents: []string{agentOne, ""}},
		`person: "ada"`:                      {People: []string{"ada"}},
		`person: ""`:                         {People: []string{"  "}},
		`domain: "ada@example.com"`:          {Domains: []string{"ada@example.com"}},
		`domain: ""`:                         {Domains: []string{""}},
		`person: "a@\xff.com" is not valid`:  {People: []string{"a@\xff.com"}},
		`domain: "\xff.com" is not valid`:    {Domains: []string{"\xff.com"}},
		"days: must be":                      {Days: MaxRestrictionDays + 1},
		"min-people: must be":                {MinPeople: 1},
		"min-people: a key for certain":      {MinPeople: 5, People: []string{"ada@example.com"}},
		"agent, --person and --domain":       many,
		`person: "` + strings.Repeat("+", 9): {People: []string{strings.Repeat("+", 321)}},
	} {
		if made, err := NewRestriction(r); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%+v: made %+v, %v, want %s", r, made, err, says)
		}
	}
	many.Agents = many.Agents[1:]
	if _, err := NewRestriction(many); err != nil {
		t.Errorf("47 agents: %v", err)
	}
	key := APIKey{Scopes: []string{"analytics:read", "ingest:write"},
		KeyLimits: KeyLimits{Restriction: &Restriction{Days: 1}}}
	if scopes, err := key.StoredScopes(); err == nil {
		t.Errorf("a restricted key has the scopes %q", scopes)
	}
}
