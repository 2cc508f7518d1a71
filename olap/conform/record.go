package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

const defaultOrganization = "acme"

// A Record has the fields of a record that ingest reads (contract 3).
type Record map[string]any

// defaults are the fields that a script may leave out.
var defaults = map[string]Record{
	"agent": {"updated_at": "2026-01-01T00:00:00Z"},
	"run":   {"agent_id": "@1", "kind": "agent", "status": "COMPLETED"},
	"attribution": {"agent_id": "@1", "activity_type": "interacted", "run_initiation_type": "human",
		"source": "web"},
}

func parseRecord(line string) (Record, error) {
	kind, body, _ := strings.Cut(line, " ")
	if defaults[kind] == nil {
		return nil, fmt.Errorf("unknown record kind %q", kind)
	}
	r := Record{"record": kind, "organization_id": defaultOrganization}
	maps.Copy(r, defaults[kind])
	if agent, ok := r["agent_id"].(string); ok {
		r["agent_id"] = strings.Trim(expand(`"`+agent+`"`), `"`)
	}
	if err := json.Unmarshal([]byte(expand(body)), &r); err != nil {
		return nil, err
	}
	if r["updated_at"] == nil && kind == "run" {
		r["updated_at"] = r["created_at"]
	}
	return r, nil
}

// Kind is agent, run or attribution.
func (r Record) Kind() string { return r["record"].(string) }

// Organization is whose record it is.
func (r Record) Organization() string {
	name, _ := r["organization_id"].(string)
	return name
}

func (r Record) in(organization string) Record {
	r = maps.Clone(r)
	r["organization_id"] = organization
	return r
}

var shortID = regexp.MustCompile(`"@(\d+)"`)

// expand writes short identifiers out: "@7" is the UUID that ends in 7.
func expand(line string) string {
	return shortID.ReplaceAllStringFunc(line, func(short string) string {
		n, _ := strconv.Atoi(strings.Trim(short, `"@`))
		return `"` + ShortID(n).String() + `"`
	})
}

// ShortID is the UUID that scripts write as @n.
func ShortID(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
}
