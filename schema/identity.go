package schema

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// An OrganizationID names the organization whose rows a caller may see. It is a type of its own so that no other string
// can be passed where an organization is required.
type OrganizationID string

var organizationPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// ParseOrganizationID checks the form of contract 3: 1 to 64 (inclusive) of A-Z a-z 0-9 . _ : -
func ParseOrganizationID(s string) (OrganizationID, error) {
	if !organizationPattern.MatchString(s) {
		return "", fmt.Errorf("must be 1 to 64 characters of A-Z a-z 0-9 . _ : -")
	}
	return OrganizationID(s), nil
}

// NormalizeIdentifier is the one normalization of a person's identifier, at ingest and in filters (contract 3): white
// space around it is removed, and an email address, recognized by its @, is lowercased. It is idempotent. Text that is
// not UTF-8 stays so: lower case would replace the wrong bytes, and two texts could become one person.
func NormalizeIdentifier(identifier string) string {
	identifier = strings.TrimSpace(identifier)
	if strings.Contains(identifier, "@") && utf8.ValidString(identifier) {
		identifier = strings.ToLower(identifier)
	}
	return identifier
}
