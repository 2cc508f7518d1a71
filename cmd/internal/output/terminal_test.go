package output

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
)

const hostile = "\x1b[31m\x7f\u009b31m\u202e\u2066\u2028\u200b\ufeff\U000e0001\u034f\u3164\r\b\x07\x00\xffé漢😀"

// What a terminal would obey is spelled out, and what people see is left as it is.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		hostile:   `\x1b[31m\u007f\u009b31m\u202e\u2066\u2028\u200b\ufeff\udb40\udc01\u034f\u3164\r\x08\x07\x00\xffé漢😀`,
		"a\nb\tc": `a\nb\tc`, "": "", "å̊ ñ\u00a0—\\n": "å̊ ñ\u00a0—\\n", "\x9b31m": `\x9b31m`, "\ufffd": "\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := PrintableLines("a\n\tb\r\x1b"); got != "a\n\tb\\r\\x1b" {
		t.Errorf("%q", got)
	}
	for r := range rune(0xA0) {
		if (r < ' ' || r >= 0x7F) != Hidden(r) {
			t.Errorf("%U", r)
		}
	}
}

// Whatever is written to a terminal, in whatever pieces, is shown. JSON has the same values afterwards.
func TestTerminalsAreGuarded(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	w := Guarded(slave)
	if !IsTerminal(w) || Controls(w) != io.Writer(slave) {
		t.Error("a terminal is not taken for one")
	}
	value := strings.ToValidUTF8(hostile, "") + "\n\t"
	document, err := json.Marshal(map[string]string{"name": value})
	if err != nil {
		t.Fatal(err)
	}
	text := string(document) + "\n" + hostile + "\nend\n"
	go func() {
		for i := range len(text) {
			if n, err := io.WriteString(w, text[i:i+1]); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		slave.Close()
	}()
	shown, _ := io.ReadAll(master) // ends with an error where the other side is closed
	lines := strings.Split(strings.ReplaceAll(string(shown), "\r\n", "\n"), "\n")
	var got map[string]string
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || got["name"] != value {
		t.Errorf("%s is read as %q, %v", lines[0], got, err)
	}
	if strings.ContainsFunc(lines[0], Hidden) || lines[1] != Printable(hostile) || lines[2] != "end" {
		t.Errorf("the terminal got %q", lines)
	}
	if reader, pipe := io.Pipe(); Controls(pipe) != io.Writer(pipe) || IsTerminal(pipe) || Columns(pipe) != 0 {
		t.Errorf("a pipe is taken for a terminal: %v", reader)
	}
}
