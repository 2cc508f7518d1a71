package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/schema"
)

// A createdKey is what keys create prints as JSON (contract 2). What follows created_at is there only if it was
// requested.
type createdKey struct {
	KeyID            string            `json:"key_id"`
	Key              string            `json:"key"`
	OrganizationID   string            `json:"organization_id"`
	Name             string            `json:"name"`
	Scopes           []string          `json:"scopes"`
	CreatedAt        string            `json:"created_at"`
	ExpiresAt        *string           `json:"expires_at,omitempty"`
	Networks         []string          `json:"networks,omitempty"`
	Restriction      *shownRestriction `json:"restriction,omitempty"`
	RotatedKeyID     string            `json:"rotated_key_id,omitempty"`
	RotatedExpiresAt *string           `json:"rotated_key_expires_at,omitempty"`
}

// actionOn is what the audit log says of a key: nothing about a person, so neither its name nor its networks, and of a
// restriction how many agents, people and domains it has.
func actionOn(name string, key schema.APIKey) audit.Action {
	details := map[string]any{"scopes": key.Scopes, "networks": len(key.Networks)}
	if r := key.Restriction; r != nil {
		details["restriction"] = map[string]int{"agents": len(r.Agents), "people": len(r.People), "domains": len(r.Domains),
			"days": r.Days, "min_people": r.MinPeople}
	}
	if key.ExpiresAt != nil {
		details["expires_at"] = instant(*key.ExpiresAt)
	}
	return audit.Action{Name: name, OrganizationID: key.OrganizationID, KeyID: key.KeyID, Details: details}
}

// printCreated shows a new key, and the one that it replaces, if any. One that can't be shown is valid all the same.
func printCreated(io streams, output, text string, key schema.APIKey, rotated *schema.APIKey) error {
	if err := writeCreated(io.out, output, text, key, rotated); err != nil {
		return fmt.Errorf("the key %s was made, but could not be shown: %w; revoke it, and make another", key.KeyID, err)
	}
	return nil
}

func writeCreated(out io.Writer, output, text string, key schema.APIKey, rotated *schema.APIKey) error {
	created := createdKey{
		KeyID: key.KeyID, Key: text, OrganizationID: string(key.OrganizationID), Name: key.Name, Scopes: key.Scopes,
		CreatedAt: instant(key.CreatedAt), ExpiresAt: optionalInstant(key.ExpiresAt), Networks: shownNetworks(key.Networks),
		Restriction: showRestriction(key.Restriction),
	}
	if rotated != nil {
		created.RotatedKeyID, created.RotatedExpiresAt = rotated.KeyID, optionalInstant(rotated.ExpiresAt)
	}
	if output == "json" {
		return json.NewEncoder(out).Encode(created)
	}
	var shown strings.Builder // written at once: it is seen whole, or the failure is
	fmt.Fprintf(&shown, "key:          %s\nkey id:       %s\norganization: %s\nscopes:       %s\n",
		text, key.KeyID, key.OrganizationID, shownScopes(key.Scopes))
	if key.ExpiresAt != nil {
		fmt.Fprintf(&shown, "expires:      %s\n", *created.ExpiresAt)
	}
	if key.Networks != nil {
		fmt.Fprintf(&shown, "networks:     %s\n", strings.Join(created.Networks, ", "))
	}
	if key.Restriction != nil {
		fmt.Fprintf(&shown, "sees:         %s\n", restrictionInWords(key.Restriction))
	}
	if rotated != nil {
		fmt.Fprintf(&shown, "The key %s expires at %s.\n", rotated.KeyID, *created.RotatedExpiresAt)
	}
	shown.WriteString("The key is not shown again.\n")
	_, err := io.WriteString(out, shown.String())
	return err
}
