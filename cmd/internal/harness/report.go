package harness

import (
	"fmt"
	"io"
)

// Notes are what a report says besides its table.
type Notes []string

// Add adds a note.
func (n *Notes) Add(format string, args ...any) { *n = append(*n, fmt.Sprintf(format, args...)) }

// Print writes a line for each note.
func (n Notes) Print(out io.Writer) {
	for _, note := range n {
		fmt.Fprintln(out, "note:", note)
	}
}

// Verdict is the word for a goal or a bound that was met, or was not.
func Verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}
