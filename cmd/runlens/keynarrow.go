package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/schema"
)

// narrowFlags say what a key sees less than its organization. An empty or zero value is an error and not the same as no
// flag: a variable that is not set must not make a key that sees all.
type narrowFlags struct {
	Agent     []string `sep:"none" placeholder:"ID" help:"@key_agent"`
	Person    []string `sep:"none" placeholder:"ID" help:"@key_person"`
	Domain    []string `sep:"none" placeholder:"DOMAIN" help:"@key_domain"`
	Days      *int     `placeholder:"N" help:"@key_days"`
	MinPeople *int     `placeholder:"N" help:"@key_min_people"`
}

// restriction is what the flags say; nil for none of them. scopes are those of the key.
func (f narrowFlags) restriction(scopes []string) (*schema.Restriction, error) {
	if len(f.Agent)+len(f.Person)+len(f.Domain) == 0 && f.Days == nil && f.MinPeople == nil {
		return nil, nil
	}
	if len(scopes) != 1 || scopes[0] != schema.ScopeAnalyticsRead {
		return nil, fmt.Errorf("--scopes: a key that sees less than its organization has %s and no other scope",
			schema.ScopeAnalyticsRead)
	}
	r := schema.Restriction{Agents: f.Agent, People: f.Person, Domains: f.Domain}
	if f.Days != nil {
		if r.Days = *f.Days; r.Days == 0 {
			return nil, errors.New("--days: must be at least 1")
		}
	}
	if f.MinPeople != nil {
		if r.MinPeople = *f.MinPeople; r.MinPeople == 0 {
			return nil, fmt.Errorf("--min-people: must be at least %d", schema.MinMinPeople)
		}
	}
	made, err := schema.NewRestriction(r)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return made, nil
}

// A shownRestriction is a restriction as commands print it as JSON. What is not restricted is absent.
type shownRestriction struct {
	Agents    []string `json:"agents,omitempty"`
	People    []string `json:"people,omitempty"`
	Domains   []string `json:"domains,omitempty"`
	Days      int      `json:"days,omitempty"`
	MinPeople int      `json:"min_people,omitempty"`
}

// showRestriction is nil for no restriction.
func showRestriction(r *schema.Restriction) *shownRestriction {
	if r == nil {
		return nil
	}
	shown := shownRestriction(*r)
	return &shown
}

// shownValues is how many values of one part are shown in words; JSON has all.
const shownValues = 3

// restrictionInWords is what a key sees: "all" without a restriction.
func restrictionInWords(r *schema.Restriction) string {
	if r == nil {
		return "all"
	}
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{{"agent", r.Agents}, {"person", r.People}, {"domain", r.Domains}} {
		switch more := len(part.values) - shownValues; {
		case more > 0:
			shown := strings.Join(part.values[:shownValues], ", ")
			parts = append(parts, fmt.Sprintf("%s %s and %d more", part.name, shown, more))
		case len(part.values) > 0:
			parts = append(parts, part.name+" "+strings.Join(part.values, ", "))
		}
	}
	if r.Days > 0 {
		parts = append(parts, fmt.Sprintf("%d days", r.Days))
	}
	if r.MinPeople > 0 {
		parts = append(parts, fmt.Sprintf("groups of %d people", r.MinPeople))
	}
	return output.Printable(strings.Join(parts, "; "))
}
