package query

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

func restrictionOf(t *testing.T, r schema.Restriction) *schema.Restriction {
	t.Helper()
	made, err := schema.NewRestriction(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Every model can be restricted by every part.
func TestEveryModelHasWhatRestrictionsFilterBy(t *testing.T) {
	for _, model := range catalog.Models {
		for _, name := range []string{catalog.RestrictedAgent, catalog.RestrictedPerson, catalog.RestrictedDomain} {
			if d := model.Restricting(name); model.Source.Field(d.Field) == nil {
				t.Errorf("%s has no field for %s", model.Name, name)
			}
		}
		if model.People.Aggregate == "" || model.Metric(model.People.Name) != nil {
			t.Errorf("the people of %s cannot be counted: %+v", model.Name, model.People)
		}
		for _, d := range model.Unpublished {
			if model.Dimension(d.Name) != nil {
				t.Errorf("%s of %s is published and unpublished", d.Name, model.Name)
			}
		}
	}
}

// A narrowed query has one filter more for each part, and another Canonical for each set of rows. The query that was
// asked is as it was.
func TestNarrow(t *testing.T) {
	now := time.Date(2026, 2, 1, 23, 59, 0, 0, time.UTC)
	const agent = "0b7e4d2c-0000-4000-8000-000000000001"
	q, err := Parse([]byte(with(`"filters":[{"member":"agent_id","op":"eq","value":"support"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	seen := []string{string(q.Canonical())}
	for _, r := range []schema.Restriction{
		{Agents: []string{agent}}, {People: []string{"ada@example.com"}}, {Domains: []string{"example.com"}},
		{Agents: []string{agent}, Domains: []string{"example.com"}}, {MinPeople: 2}, {MinPeople: 3},
		{Domains: []string{"example.com"}, MinPeople: 3}, {Domains: []string{"example.com", "example.org"}},
	} {
		narrow, err := q.Narrow(restrictionOf(t, r), now)
		if err != nil || slices.Contains(seen, string(narrow.Canonical())) || narrow.MinPeople != r.MinPeople {
			t.Errorf("%+v: %+v, %v", r, narrow, err)
		}
		seen = append(seen, string(narrow.Canonical()))
		values := slices.Concat(r.Agents, r.People, r.Domains)
		for _, f := range narrow.Filters[1:] {
			for _, v := range f.Values {
				values = slices.DeleteFunc(values, func(want string) bool { return want == v })
			}
		}
		if len(values) > 0 || len(q.Filters) != 1 {
			t.Errorf("%+v: no filter for %q", r, values)
		}
	}
}

// Days end at midnight in UTC, and a question that begins before is refused; so is a person, where groups have a least
// number of people.
func TestNarrowRefuses(t *testing.T) {
	lastMoment := time.Date(2026, 1, 31, 23, 59, 59, 999_999_999, time.UTC)
	const people = `"dimensions":["user_identifier"]`
	ofPerson := `"filters":[{"member":"user_identifier","op":"in","values":["a@example.com","b@example.com"]}]`
	for name, c := range map[string]struct {
		body  string
		r     schema.Restriction
		now   time.Time
		param string // empty for no refusal
	}{
		"30 days before":          {valid, schema.Restriction{Days: 30}, lastMoment, ""},
		"31 days before":          {valid, schema.Restriction{Days: 30}, lastMoment.Add(1), "range.start"},
		"as many days as allowed": {valid, schema.Restriction{Days: 31}, lastMoment.Add(1), ""},
		"now in another zone":     {valid, schema.Restriction{Days: 30}, lastMoment.In(time.FixedZone("", 14*3600)), ""},
		"a zone east of Greenwich": {strings.Replace(valid, "UTC", "Europe/Paris", 1), schema.Restriction{Days: 30},
			lastMoment, "range.start"},
		"people": {with(people), schema.Restriction{MinPeople: 2}, lastMoment, "user_identifier"},
		"people, in order": {with(people + `,"order":[{"member":"user_identifier","direction":"asc"}]`),
			schema.Restriction{MinPeople: 2}, lastMoment, "user_identifier"},
		"a person":           {with(ofPerson), schema.Restriction{MinPeople: 2}, lastMoment, "user_identifier"},
		"people, no minimum": {with(people + "," + ofPerson), schema.Restriction{Days: 30}, lastMoment, ""},
		"no people": {with(`"dimensions":["agent_id","user_type","day"]`), schema.Restriction{MinPeople: 2},
			lastMoment, ""},
	} {
		q, err := Parse([]byte(c.body))
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = q.Narrow(restrictionOf(t, c.r), c.now)
		var refused *Error
		if errors.As(err, &refused) != (c.param != "") ||
			refused != nil && (refused.Code != RestrictedKey || refused.Param != c.param) {
			t.Errorf("%s: %v, want a refusal of %q", name, err, c.param)
		}
	}
}
