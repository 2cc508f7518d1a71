package logs

import (
	"net/url"
	"slices"
	"strings"
)

// Text is what an error says, without the queries of addresses in it: statements have their settings there, which are
// long, and their parameters, which may name people. Each line is there once: drivers that try an address in several
// ways, as with TLS and without, say of each how it failed.
func Text(err error) string {
	text := err.Error()
	eachFailedRequest(err, func(failed *url.Error) {
		if address, _, found := strings.Cut(failed.URL, "?"); found {
			text = strings.ReplaceAll(text, failed.URL, address)
		}
	})
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// eachFailedRequest goes through an error and all that it wraps.
func eachFailedRequest(err error, do func(*url.Error)) {
	if failed, ok := err.(*url.Error); ok {
		do(failed)
	}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		eachFailedRequest(wrapping.Unwrap(), do)
	case interface{ Unwrap() []error }:
		for _, one := range wrapping.Unwrap() {
			eachFailedRequest(one, do)
		}
	}
}
