package schema

import "strings"

// NormalizeIdentifier is the one normalization of a person's identifier, at ingest and in filters (contract 3): white
// space around it is removed, and an email address, recognized by its @, is lowercased. It is idempotent.
func NormalizeIdentifier(identifier string) string {
	identifier = strings.TrimSpace(identifier)
	if strings.Contains(identifier, "@") {
		identifier = strings.ToLower(identifier)
	}
	return identifier
}
