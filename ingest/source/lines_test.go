package source

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(t *testing.T, in io.Reader) (texts []string, numbers []int) {
	t.Helper()
	lines := newLines(in, Position{})
	for {
		text, fault, err := lines.next()
		if errors.Is(err, io.EOF) {
			return texts, numbers
		}
		if err != nil {
			t.Fatal(err)
		}
		if fault != nil {
			t.Fatalf("line %d: %v", lines.at.Lines, fault)
		}
		texts, numbers = append(texts, string(text)), append(numbers, lines.at.Lines)
	}
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		texts   string // joined by |
		numbers string // the last one
	}{
		"nothing":              {"", "", ""},
		"one line":             {"a\n", "a", "1"},
		"no last line feed":    {"a\nb", "a|b", "2"},
		"CRLF":                 {"a\r\nb\r\n", "a|b", "2"},
		"blank lines count":    {"\n  \na\n\n\nb\n", "a|b", "6"},
		"byte order mark":      {"\xef\xbb\xbfa\nb\n", "a|b", "2"},
		"only a mark":          {"\xef\xbb\xbf", "", ""},
		"spaces stay":          {" a \n", " a ", "1"},
		"blank as JSON has it": {" \t\r\na\n", "a", "2"},
		"other spaces":         {"\u00a0\n\u2003\n\v\n", "\u00a0|\u2003|\v", "3"},
		"longer than buffers":  {strings.Repeat("x", 300<<10) + "\ny\n", strings.Repeat("x", 300<<10) + "|y", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				texts, numbers := readAll(t, in)
				if got := strings.Join(texts, "|"); got != c.texts {
					t.Errorf("got %.60q, want %.60q", got, c.texts)
				}
				if c.numbers != "" && string(rune('0'+numbers[len(numbers)-1])) != c.numbers {
					t.Errorf("numbers %v, want the last to be %s", numbers, c.numbers)
				}
			}
		})
	}
}

// A line of the greatest length is a record; a longer one is a fault of its own, and the next line is read again.
func TestLineLength(t *testing.T) {
	in := strings.Repeat("x", MaxLineBytes) + "\r\n" + strings.Repeat("y",
		MaxLineBytes+1) + "\nnext\n" + strings.Repeat("z", 3*MaxLineBytes)
	lines := newLines(strings.NewReader(in), Position{})
	for i, want := range []struct {
		length int
		fault  error
	}{{MaxLineBytes, nil}, {keptBytes, ErrTooLong}, {4, nil}, {keptBytes, ErrTooLong}} {
		text, fault, err := lines.next()
		if err != nil || lines.at.Lines != i+1 || len(text) != want.length || !errors.Is(fault, want.fault) {
			t.Fatalf("line %d: number %d, %d bytes, %v, %v; want %d bytes, %v", i+1, lines.at.Lines, len(text), fault, err,
				want.length, want.fault)
		}
	}
	if _, _, err := lines.next(); !errors.Is(err, io.EOF) || lines.at.Offset != int64(len(in)) {
		t.Errorf("got %v at %d, want the end at %d", err, lines.at.Offset, len(in))
	}
}

// A line that is too long is a fault whatever of it is blank or looks like an end of line.
func TestLongLinesAreNeverBlank(t *testing.T) {
	for name, line := range map[string]string{
		"blank beginning":       strings.Repeat(" ", keptBytes) + strings.Repeat("x", MaxLineBytes),
		"blank":                 strings.Repeat("\t", MaxLineBytes+1),
		"carriage returns":      "x" + strings.Repeat("\r", 2*MaxLineBytes) + "y",
		"only carriage returns": strings.Repeat("\r", 2*MaxLineBytes),
	} {
		lines := newLines(strings.NewReader(line+"\nnext\n"), Position{})
		if text, fault, err := lines.next(); !errors.Is(fault, ErrTooLong) || err != nil {
			t.Errorf("%s: %.20q, %v, %v, want %v", name, text, fault, err, ErrTooLong)
		}
		if text, fault, err := lines.next(); string(text) != "next" || fault != nil || err != nil {
			t.Errorf("%s: then %.20q, %v, %v, want the next line", name, text, fault, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	lines := newLines(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), Position{})
	if text, _, err := lines.next(); err != nil || string(text) != "a" {
		t.Fatalf("%q, %v", text, err)
	}
	if _, _, err := lines.next(); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}
