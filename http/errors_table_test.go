package httpapi_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// errors.md has a row for every code that the server answers with, and for no other.
func TestErrorTable(t *testing.T) {
	text, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d.*?) \|`).FindAllStringSubmatch(string(text), -1) {
		for _, answer := range regexp.MustCompile("(\\d{3}) `([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, answer[1]+" "+answer[2])
		}
	}
	slices.Sort(got)
	// Spec section 7, and contract 4.14.
	want := []string{
		"400 invalid_cursor", "400 invalid_query", "400 range_too_large", "400 unknown_member", "401 unauthorized",
		"403 insufficient_scope", "404 not_found", "405 method_not_allowed", "429 rate_limited", "500 internal_error",
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("errors.md explains\n%q\nwant\n%q", got, want)
	}
}
