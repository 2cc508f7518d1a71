// Package finding has the form of what an examination of a store or a source finds.
package finding

import (
	"log/slog"
	"slices"
	"strings"
)

// A Result is how a check ends.
type Result string

// The results, from the best to the worst.
const (
	OK      Result = "ok"
	Unknown Result = "not known" // it could not be checked
	Warning Result = "warning"   // it works, and costs something or may stop to
	Problem Result = "problem"   // something fails, or an answer may be wrong
)

// A Finding is the result of one check. It may hold names that operators chose, and nothing of an organization's.
type Finding struct {
	Check  string `json:"check"` // what was checked, in one or two words
	Result Result `json:"result"`
	Says   string `json:"says"`         // one sentence
	Do     string `json:"do,omitempty"` // what to do, or the SQL or XML to paste; it may have several lines
}

// OneLine is a text of somebody else, such as an error, as a Finding says it.
func OneLine(text string) string {
	one := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasSuffix(one, ":"):
			one += " "
		case one != "":
			one += "; "
		}
		one += line
	}
	return one
}

// Worst returns the worst result; OK for none.
func Worst(found []Finding) Result {
	order := []Result{OK, Unknown, Warning, Problem}
	worst := 0
	for _, f := range found {
		worst = max(worst, slices.Index(order, f.Result))
	}
	return order[worst]
}

// Log logs what is wrong, a line each: a problem as an error.
func Log(logger *slog.Logger, found []Finding) {
	for _, f := range found {
		switch f.Result {
		case Problem:
			logger.Error(f.Says, "check", f.Check, "do", f.Do)
		case Warning:
			logger.Warn(f.Says, "check", f.Check, "do", f.Do)
		}
	}
}
