package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// restricted stores a key of acme that sees less than it.
func (s *service) restricted(r schema.Restriction) string {
	s.t.Helper()
	restriction, err := schema.NewRestriction(r)
	if err != nil {
		s.t.Fatal(err)
	}
	text, c := auth.NewKey()
	key := schema.APIKey{KeyID: c.KeyID, SecretHash: c.Hash, OrganizationID: "acme", CreatedAt: time.Now(),
		Scopes: []string{auth.ScopeAnalyticsRead}, KeyLimits: schema.KeyLimits{Restriction: restriction}}
	if err := s.keys.Put(context.Background(), key); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// Keys that see less are answered with their rows and refused what they may not ask, in every format, and a key whose
// restriction is one of a later version may ask nothing.
func TestRestrictedKeys(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	now := time.Now().UTC()
	today, before := now.Format(time.DateOnly), now.AddDate(0, 0, -3).Format(time.DateOnly)
	var records olaptest.Records
	for i, person := range []string{"ada@one.test", "bob@two.test", "cy@two.test"} {
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ShortID(i), Identifier: &person,
			AgentID: olaptest.ID(i), CreatedAt: now.Truncate(24 * time.Hour), UpdatedAt: now, Kind: "agent", Status: "FAILED"})
	}
	olaptest.Load(t, store.Conn(), records)
	ask := func(properties, start string) string {
		return fmt.Sprintf(`{"model":"agent_runs","metrics":["run_count"]%s,"range":{"start":"%s","end":"%s",`+
			`"timezone":"UTC"}}`, properties, start, today)
	}
	two := s.restricted(schema.Restriction{Domains: []string{"two.test"}})
	one := s.restricted(schema.Restriction{Agents: []string{olaptest.ID(0).String()}, Days: 2})
	crowd := s.restricted(schema.Restriction{MinPeople: 3})
	few := s.restricted(schema.Restriction{MinPeople: 4})
	byAgent := `,"dimensions":["agent_id"]`
	forbidden := func(a answer, reason string) {
		t.Helper()
		a.want(t, 403, "restricted_key", "") // contract 4.18: no param
		if got := a.header.Get("x-runlens-reason"); got != reason {
			t.Errorf("x-runlens-reason %q, want %q", got, reason)
		}
	}
	for range 3 { // also from the cache
		for _, c := range []struct{ key, body, want string }{
			{s.reader(), ask("", before), "[[3]]"},
			{two, ask("", before), "[[2]]"}, {one, ask("", today), "[[1]]"}, {crowd, ask("", today), "[[3]]"},
			{few, ask("", today), "[[null]]"}, {crowd, ask(byAgent, today), "[]"},
			{one, ask(`,"filters":[{"member":"user_identifier","op":"eq","value":"bob@two.test"}]`, today), "[[0]]"},
		} {
			a := s.post(c.key, c.body)
			a.want(t, 200, "", "")
			var answered struct{ Rows json.RawMessage }
			if err := json.Unmarshal(a.body, &answered); err != nil || string(answered.Rows) != c.want {
				t.Errorf("%s: got %s, want %s", c.body, a.body, c.want)
			}
		}
	}
	forbidden(s.post(one, ask("", before)), "range.start")
	forbidden(s.post(crowd, ask(`,"dimensions":["user_identifier"]`, today)), "user_identifier")
	s.post(crowd, ask(`,"dimensions":["day","day"]`, today)).want(t, 400, "invalid_query", "dimensions[1]")
	s.get(catalogPath, two).want(t, 200, "", "")

	first := s.post(two, ask(`,"limit":1`+byAgent, today))
	var page struct{ Cursor string }
	if err := json.Unmarshal(first.body, &page); err != nil || page.Cursor == "" {
		t.Fatal(string(first.body), err)
	}
	next := ask(`,"limit":1,"cursor":"`+page.Cursor+`"`+byAgent, today)
	s.post(two, next).want(t, 200, "", "")
	for _, other := range []string{s.reader(), one, few} {
		s.post(other, next).want(t, 400, "invalid_cursor", "cursor")
	}
	csv := s.post(few, ask("", today), "Accept", "text/csv")
	if got := strings.TrimSpace(string(csv.body)); csv.status != 200 || got != "\"run_count\"\r\n\"\"" {
		t.Errorf("CSV %q", got)
	}
	later := s.key("acme", auth.ScopeAnalyticsRead+"?channel=web")
	s.post(later, ask("", today)).want(t, 403, "insufficient_scope", "")
	s.get(catalogPath, later).want(t, 403, "insufficient_scope", "")
}
