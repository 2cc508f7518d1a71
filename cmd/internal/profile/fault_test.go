package profile

import (
	"strings"
	"testing"
	"time"
)

// What is wrong in a file is said in words of YAML, not of Go.
func TestFaultsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"top: many":              "line 1: `many` must be a number",
		"top: 3\nlast: [1]":      "line 2: this must be a text",
		"wait: soon":             "line 1: `soon` must be a duration such as 1h",
		"on: 7":                  "line 1: `7` must be true or false",
		"names: Ada":             "line 1: `Ada` must be a list",
		"ada: Ada":               "line 1: `Ada` must be fields with their values",
		"top: 3\n\ncolour: blue": "line 3: there is no field colour",
		"top: [3":                "line 1: did not find expected ',' or ']'",
		"":                       "",
	} {
		var into struct {
			Top   int
			Last  string
			Wait  time.Duration
			On    bool
			Names []string
			Ada   Profile
		}
		said := ""
		if err := Decode(strings.NewReader(text), &into); err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("%q: %q, want %q", text, said, want)
		}
	}
}
