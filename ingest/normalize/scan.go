package normalize

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// scan reads the notation that nearly every line has: an object of strings without escapes and of
// nulls. It reports false for every other line, right or wrong, and leaves it to readStrictly,
// which it agrees with on all lines it reads (FuzzJSON). It is what makes reading JSON about five times as
// quick as with a general parser.
func scan(line []byte, raw *Raw) bool {
	if bytes.IndexByte(line, '\\') >= 0 || !printable(line) {
		return false
	}
	s := scanner{rest: line}
	var names, values [maxFields + 1][]byte
	n, kindAt := 0, -1
	if !s.take('{') {
		return false
	}
	for {
		if n == len(names) {
			return false
		}
		var ok bool
		if names[n], ok = s.text(); !ok || !s.take(':') {
			return false
		}
		if values[n], ok = s.value(); !ok {
			return false
		}
		if string(names[n]) == "record" {
			kindAt = n
		}
		n++
		if s.take(',') {
			continue
		}
		if s.take('}') && s.end() && kindAt >= 0 {
			break
		}
		return false
	}
	*raw = Raw{}
	switch string(values[kindAt]) {
	case "agent":
		raw.Kind = KindAgent
	case "run":
		raw.Kind = KindRun
	case "attribution":
		raw.Kind = KindAttribution
	default:
		return false
	}
	seen := uint(0) // a second "record" is no field, so that it is found as well
	fields := Fields(raw.Kind)
	guess := 0 // lines of one writer have their fields in one order
	for i := range n {
		if i == kindAt {
			continue
		}
		at := guess % len(fields)
		for tried := 0; fields[at] != string(names[i]); tried++ {
			if tried == len(fields) {
				return false
			}
			at = (at + 1) % len(fields)
		}
		if seen&(1<<at) != 0 {
			return false
		}
		seen |= 1 << at
		raw.Values[at] = values[i]
		guess = at + 1
	}
	return true
}

// printable reports whether text is UTF-8 without control characters. It reads eight bytes at a time:
// taking a space from a byte below it borrows from the byte's highest bit.
func printable(text []byte) bool {
	const spaces, highest = 0x2020202020202020, 0x8080808080808080
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		if word := binary.LittleEndian.Uint64(rest); (word-spaces)&^word&highest != 0 {
			return false
		}
	}
	for _, c := range rest {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(text)
}

type scanner struct{ rest []byte }

func (s *scanner) space() {
	for len(s.rest) > 0 && s.rest[0] == ' ' {
		s.rest = s.rest[1:]
	}
}

// take reads one character.
func (s *scanner) take(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a string without escapes.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		return nil, false
	}
	text := s.rest[:end:end]
	s.rest = s.rest[end+1:]
	return text, true
}

// value reads a string or null.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	if rest, ok := bytes.CutPrefix(s.rest, []byte("null")); ok {
		s.rest = rest
		return nil, true
	}
	return s.text()
}

func (s *scanner) end() bool {
	s.space()
	return len(s.rest) == 0
}
