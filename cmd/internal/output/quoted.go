package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quoted is a word of a shell's command line, in printable characters alone: a terminal would obey others when the line
// is pasted. bash, zsh and ksh know the form with a dollar.
func Quoted(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=.,:/@", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	if utf8.ValidString(text) && !strings.ContainsFunc(text, Hidden) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 || Hidden(r) || strings.ContainsRune(`\'!`, r) {
			for _, c := range []byte(text[:size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		} else {
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String() + "'"
}
