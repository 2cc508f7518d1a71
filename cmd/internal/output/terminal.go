package output

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// A terminal shows what is written to it: by itself it would obey the controls in texts of strangers. JSON stays JSON
// of the same values.
type terminal struct {
	file *os.File

	mu   sync.Mutex
	rest []byte // of a character that is not whole yet
}

// Guarded is the file itself, or where that is a terminal a writer that spells out what a terminal would obey. Files
// that a person names, and standard output and error, are written through it alone; see Controls.
func Guarded(file *os.File) io.Writer {
	if term.IsTerminal(int(file.Fd())) {
		return &terminal{file: file}
	}
	return file
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := append(t.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if last := text[len(text)-back:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= back
			}
			break
		}
	}
	t.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(t.file, PrintableLines(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Controls is the writer without that guard, for colors and cursors of ours. Everything else in what is written must be
// Printable.
func Controls(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.file
	}
	return w
}

// IsTerminal reports whether a person sees what is written at once.
func IsTerminal(w io.Writer) bool {
	_, ok := w.(*terminal)
	return ok
}

// Columns is how many columns a terminal has; 0 for what is no terminal.
func Columns(w io.Writer) int {
	t, ok := w.(*terminal)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(t.file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
