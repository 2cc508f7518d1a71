package schema

import "testing"

// Contract 3: white space around an identifier is removed, an email address becomes lower case. Bytes that are no UTF-8
// stay, so that a check afterwards finds them.
func TestNormalizeIdentifier(t *testing.T) {
	for given, want := range map[string]string{
		"\u00a0 Ada@Example.COM\n": "ada@example.com",
		"É@EXAMPLE.com":            "é@example.com",
		" Cron Job ":               "Cron Job",
		" \t":                      "",
		"a@\xff.com ":              "a@\xff.com",
		"a@\xfe.com":               "a@\xfe.com",
	} {
		if got := NormalizeIdentifier(given); got != want || NormalizeIdentifier(got) != got {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}
