package httpapi_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// errors.md has a part for every code that the server answers with, and for no other.
func TestErrorTable(t *testing.T) {
	text, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	heading := regexp.MustCompile("(?m)^## `([a-z_]+)`\n\nStatus (\\d{3})\\. ")
	for _, part := range heading.FindAllStringSubmatch(string(text), -1) {
		got = append(got, part[2]+" "+part[1])
	}
	slices.Sort(got)
	// Spec section 7, contract 4.14, ingest.yaml, and what keys that see less than their organization are refused.
	want := []string{
		"400 invalid_body", "400 invalid_cursor", "400 invalid_query", "400 range_too_large", "400 unknown_member",
		"401 unauthorized", "403 insufficient_scope", "403 restricted_key", "404 not_found", "405 method_not_allowed",
		"413 body_too_large", "422 no_valid_record", "429 rate_limited", "500 internal_error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("errors.md explains\n%q\nwant\n%q", got, want)
	}
}
