package auth

import (
	"errors"
	"strings"
	"testing"
)

// Contract 4.12: rl_ + key id + _ + secret + checksum.
func TestKeysParse(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text, made := NewKey()
		read, err := ParseKey(text)
		if err != nil || read != made {
			t.Fatalf("%s: %v, %v, want %v", text, read, err, made)
		}
		if !strings.HasPrefix(text, "rl_"+made.KeyID+"_") || seen[made.KeyID] {
			t.Fatalf("%s: id %s", text, made.KeyID)
		}
		seen[made.KeyID] = true
	}
}

// A key is found wherever a text has it.
func TestFindKey(t *testing.T) {
	text, made := NewKey()
	for _, around := range [][2]string{{}, {"rl_", "rl_"}, {"é@", ","}, {"Authorization: Bearer ", "\n"}, {"--", "=x"}} {
		if found, ok := FindKey(around[0] + text + around[1]); !ok || found != made {
			t.Errorf("%q: %v, %v, want %v", around, found, ok, made)
		}
	}
	for _, none := range []string{"", "rl_", text[1:], text[:len(text)-1], text[:30] + "-" + text[30:]} {
		if _, ok := FindKey(none); ok {
			t.Errorf("%q has a key", none)
		}
	}
}

// The checksum finds every mistyped character, without a look-up.
func TestMalformedKeys(t *testing.T) {
	text, _ := NewKey()
	malformed := []string{
		"",
		"rl_",
		"x",
		" " + text,
		text + "\n",
		strings.ToUpper(text),
		text[1:],
		text[:len(text)-1],
		strings.Repeat("x", len(text)),
	}
	for i := range text {
		other := byte('a')
		if text[i] == 'a' {
			other = 'b'
		}
		malformed = append(malformed, text[:i]+string(other)+text[i+1:])
	}
	for _, m := range malformed {
		if _, err := ParseKey(m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", m, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	text, _ := NewKey()
	f.Add(text)
	f.Add("rl_x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseKey(text)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		if err == nil && !strings.Contains(text, c.KeyID) {
			t.Fatalf("%q has the id %q", text, c.KeyID)
		}
	})
}
