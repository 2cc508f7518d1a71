package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bounds of a restriction, inclusive.
const (
	// MaxRestrictionBytes bounds the text of a restriction, and so the row that a look-up of a key returns.
	MaxRestrictionBytes = 2048
	MaxRestrictionDays  = 36_500
	MinMinPeople        = 2 // of fewer, every group of anybody at all has enough
	MaxMinPeople        = 10_000

	maxIdentifierLength = 320 // characters, as of a record (contract 3)
	maxDomainLength     = 255
)

// A Restriction is what a key may read of its organization: the rows that each of its parts lets through. A key without
// one reads all rows: a Restriction is never empty. It does not change once it is made.
type Restriction struct {
	Agents  []string // UUIDs as text in lower case; empty for all
	People  []string // normalized identifiers; empty for all
	Domains []string // of people's email addresses, in lower case; empty for all
	// Days is how many days before today, in UTC, the oldest row was recorded, today not counted; 0 for any number.
	Days int
	// MinPeople is how many different people a group has to have to be shown; 0 for any number.
	MinPeople int
}

// NewRestriction normalizes and checks a restriction. The error says which part is wrong, by its name in the text.
func NewRestriction(r Restriction) (*Restriction, error) {
	var err error
	if r.Agents, err = normalized(r.Agents, "agent", agentID); err != nil {
		return nil, err
	}
	if r.People, err = normalized(r.People, "person", identifier); err != nil {
		return nil, err
	}
	if r.Domains, err = normalized(r.Domains, "domain", domain); err != nil {
		return nil, err
	}
	switch {
	case r.Days < 0 || r.Days > MaxRestrictionDays:
		return nil, fmt.Errorf("days: must be 1 to %d", MaxRestrictionDays)
	case r.MinPeople != 0 && (r.MinPeople < MinMinPeople || r.MinPeople > MaxMinPeople):
		return nil, fmt.Errorf("min-people: must be %d to %d", MinMinPeople, MaxMinPeople)
	case r.MinPeople != 0 && len(r.People) > 0:
		return nil, errors.New("min-people: a key for certain people can't have a least number of people: " +
			"it would show who is behind a group")
	case r.text() == "":
		return nil, errors.New("nothing is restricted")
	case len(r.text()) > MaxRestrictionBytes:
		return nil, fmt.Errorf("agent, --person and --domain: too long together: at most %d bytes, such as 47 agents",
			MaxRestrictionBytes)
	}
	return &r, nil
}

// normalized are the different values of a part, sorted.
func normalized(values []string, part string, one func(string) (string, error)) ([]string, error) {
	var list []string
	for _, value := range values {
		if !utf8.ValidString(value) { // lower case would hide it
			return nil, fmt.Errorf("%s: %q is not valid UTF-8", part, value)
		}
		value, err := one(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		list = append(list, value)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// agentID takes ids only: a slug could be given to another agent later.
func agentID(text string) (string, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(id.String()) {
		return "", fmt.Errorf("%q is no agent's id (a UUID)", text)
	}
	return id.String(), nil
}

func identifier(text string) (string, error) {
	text = NormalizeIdentifier(text)
	if text == "" || len([]rune(text)) > maxIdentifierLength || !strings.ContainsAny(text, "@+") {
		return "", fmt.Errorf("%q is no email address or phone number in the form +15550100", text)
	}
	return text, nil
}

func domain(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || len(text) > maxDomainLength || strings.ContainsAny(text, "@*, \t\r\n") {
		return "", fmt.Errorf("%q is no domain such as example.com", text)
	}
	return text, nil
}

// text is the restriction as part of a scope: the same for equal restrictions.
func (r *Restriction) text() string {
	values := url.Values{}
	for part, list := range map[string][]string{"agent": r.Agents, "person": r.People, "domain": r.Domains} {
		if len(list) > 0 {
			values[part] = list
		}
	}
	for part, n := range map[string]int{"days": r.Days, "min_people": r.MinPeople} {
		if n != 0 {
			values.Set(part, strconv.Itoa(n))
		}
	}
	return values.Encode()
}

// parseRestriction reads what text wrote, and nothing else: not a part that this version does not know.
func parseRestriction(text string) (*Restriction, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	r := Restriction{Agents: values["agent"], People: values["person"], Domains: values["domain"]}
	for part, n := range map[string]*int{"days": &r.Days, "min_people": &r.MinPeople} {
		if values.Has(part) {
			if *n, err = strconv.Atoi(values.Get(part)); err != nil {
				return nil, err
			}
		}
	}
	parsed, err := NewRestriction(r)
	if err == nil && parsed.text() != text {
		err = errors.New("schema: a restriction that this version does not know")
	}
	return parsed, err
}

// Rows is the part of the restriction that decides which rows and groups an answer has, as text. Equal queries with
// equal Rows have equal answers: days only decide whether a query is answered.
func (r *Restriction) Rows() string {
	rows := *r
	rows.Days = 0
	return rows.text()
}

// ScopeAnalyticsRead permits to read the catalog and to query (spec 5.1). It is the only scope that can be restricted.
const ScopeAnalyticsRead = "analytics:read"

// restrictedBy stands between the scope and its restriction where a key is stored.
const restrictedBy = "?"

// StoredScopes are the scopes of a key as they are stored: with the restriction in the scope that it restricts, as in
// analytics:read?days=90, so that no reader can take the scope without it. A version that does not know restrictions,
// or not this one, finds a scope that it does not know.
func (k *APIKey) StoredScopes() ([]string, error) {
	if k.Restriction == nil {
		return k.Scopes, nil
	}
	if len(k.Scopes) != 1 || k.Scopes[0] != ScopeAnalyticsRead {
		return nil, errors.New("a key that is restricted has the scope " + ScopeAnalyticsRead + " and no other")
	}
	return []string{ScopeAnalyticsRead + restrictedBy + k.Restriction.text()}, nil
}

// SetStoredScopes reads what StoredScopes wrote. A restriction that cannot be read leaves the key with that text for a
// scope, which permits nothing, and no other.
func (k *APIKey) SetStoredScopes(stored []string) {
	k.Scopes, k.Restriction = stored, nil
	restricted := slices.IndexFunc(stored, func(s string) bool { return strings.Contains(s, restrictedBy) })
	if restricted < 0 {
		return
	}
	k.Scopes = stored[restricted : restricted+1]
	scope, text, _ := strings.Cut(k.Scopes[0], restrictedBy)
	if r, err := parseRestriction(text); err == nil && len(stored) == 1 && scope == ScopeAnalyticsRead {
		k.Scopes, k.Restriction = []string{ScopeAnalyticsRead}, r
	}
}
