package normalize

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// read reads and normalizes one line.
func read(line []byte) (any, error) {
	var raw Raw
	if err := ReadJSON(line, &raw); err != nil {
		return nil, err
	}
	n := NewNormalizer()
	switch raw.Kind {
	case KindAgent:
		return n.Agent(&raw)
	case KindRun:
		return n.Run(&raw)
	default:
		return n.Attribution(&raw)
	}
}

// Whatever the line, the quick reader agrees with the strict one, and an error is an *Error.
func FuzzJSON(f *testing.F) {
	for _, line := range []string{agentLine, runLine, attrLine, `{}`, `null`, with(agentLine, "name", "null"),
		strings.ReplaceAll(runLine, ",", " , ")} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var quick, strict Raw
		if scan(line, &quick) {
			if fault := readStrictly(line, &strict, false); fault != nil || !reflect.DeepEqual(quick, strict) {
				t.Fatalf("%q: quick %+v, strict %+v, %v", line, quick, strict, fault)
			}
		}
		record, err := read(line)
		var rejected *Error
		if err != nil && !errors.As(err, &rejected) || err == nil && record == nil {
			t.Fatalf("%q: %v, %v", line, record, err)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	n := NewNormalizer()
	var raw Raw
	for b.Loop() {
		if err := ReadJSON([]byte(attrLine), &raw); err != nil {
			b.Fatal(err)
		}
		if _, err := n.Attribution(&raw); err != nil {
			b.Fatal(err)
		}
	}
}
