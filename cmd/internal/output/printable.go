package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable is text in one line in which nothing is hidden: what is no visible character is spelled out. Texts of
// strangers, such as names, and messages of servers reach a terminal or a log only through it.
func Printable(text string) string { return spelled(text, "", shortForm) }

// PrintableLines is Printable for text of several lines. JSON stays JSON of the same values.
func PrintableLines(text string) string { return spelled(text, "\n\t", shortForm) }

// PrintableSource is Printable for source text of several lines in which hidden characters are in literals that take
// \u0000 and \U00000000, such as those of Go and of YAML.
func PrintableSource(text string) string { return spelled(text, "\n\t", longForm) }

// Hidden reports whether a character is not seen as itself: controls of terminals (C0, DEL, C1), marks that turn the
// direction of text, separators of lines, and what has no width. A space is seen.
func Hidden(r rune) bool {
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// spelled is text without hidden characters but those kept. What is no UTF-8 is hidden: terminals take some of its
// bytes for controls.
func spelled(text, kept string, form func(rune) string) string {
	shown := func(r rune) bool { return !Hidden(r) || strings.ContainsRune(kept, r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !shown(r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case shown(r):
			b.WriteRune(r)
		default:
			b.WriteString(form(r))
		}
		text = text[size:]
	}
	return b.String()
}

var shortNames = map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}

// shortForm is that of Go and JSON as far as they agree. JSON has no such characters below U+0020.
func shortForm(r rune) string {
	high, low := utf16.EncodeRune(r)
	switch name, named := shortNames[r]; {
	case named:
		return name
	case r < ' ':
		return fmt.Sprintf(`\x%02x`, r)
	case high != unicode.ReplacementChar:
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func longForm(r rune) string {
	if r > 0xFFFF {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return shortForm(r)
}
