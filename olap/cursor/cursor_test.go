package cursor

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/value"
)

var (
	sealer    = NewSealer([]byte("secret"))
	canonical = []byte(`{"model":"agent_runs"}`)
	example   = Cursor{AsOf: time.UnixMilli(1_770_000_000_123).UTC(),
		After: []value.Value{{Kind: value.Text, Text: "a@b.org"}, {Kind: value.Null}, {Kind: value.Day, Number: 20_000}}}
)

func TestOpenReturnsWhatWasSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Cursor{AsOf: time.UnixMilli(rapid.Int64Range(0, 1<<44).Draw(t, "asOf")).UTC()}
		for range rapid.IntRange(1, 7).Draw(t, "values") {
			switch kind := rapid.SampledFrom([]value.Kind{value.Null, value.Text, value.Day}).Draw(t, "kind"); kind {
			case value.Text:
				c.After = append(c.After, value.Value{Kind: kind, Text: rapid.String().Draw(t, "text")})
			default:
				c.After = append(c.After, value.Value{Kind: kind, Number: int64(kind/value.Day) * rapid.Int64().Draw(t, "day")})
			}
		}
		got, err := sealer.Open("org", canonical, sealer.Seal("org", canonical, c))
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("got %v, %v; want %v", got, err, c)
		}
	})
}

// Spec 4.2 rule 4: a cursor belongs to one organization and one canonical query.
func TestOpenRefusesForeignCursors(t *testing.T) {
	text := sealer.Seal("org", canonical, example)
	for name, open := range map[string]func() (Cursor, error){
		"organization": func() (Cursor, error) { return sealer.Open("other", canonical, text) },
		"query":        func() (Cursor, error) { return sealer.Open("org", []byte(`{}`), text) },
		"secret":       func() (Cursor, error) { return NewSealer([]byte("x")).Open("org", canonical, text) },
		"border moved": func() (Cursor, error) { return sealer.Open("org{", canonical[1:], text) },
	} {
		if _, err := open(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}

// While a secret is replaced two are accepted: the first one signs, and what either signed opens.
func TestTwoSecrets(t *testing.T) {
	before, after := NewSealer([]byte("old")), NewSealer([]byte("new"))
	both := NewSealer([]byte("new"), []byte("old"))
	for name, c := range map[string]struct {
		seal, open Sealer
		accepted   bool
	}{
		"old, by both": {before, both, true}, "new, by both": {after, both, true}, "both, by new": {both, after, true},
		"both, by old": {both, before, false}, "old, by new": {before, after, false},
	} {
		if _, err := c.open.Open("org", canonical, c.seal.Seal("org", canonical, example)); (err == nil) != c.accepted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefusesEveryChangedByte(t *testing.T) {
	text := sealer.Seal("org", canonical, example)
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	for i := range raw {
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1
		_, err := sealer.Open("org", canonical, base64.RawURLEncoding.EncodeToString(changed))
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("byte %d changed: got %v, want ErrInvalid", i, err)
		}
	}
	for i := range text {
		if _, err := sealer.Open("org", canonical, text[:i]+"\n"+text[i:]); !errors.Is(err, ErrInvalid) {
			t.Errorf("line feed at %d: got %v, want ErrInvalid", i, err)
		}
		if _, err := sealer.Open("org", canonical, text[:i]); !errors.Is(err, ErrInvalid) {
			t.Errorf("cut at %d: got %v, want ErrInvalid", i, err)
		}
	}
}

// Spec section 8: a cursor has at most 2048 characters, also after the longest values that records may hold (contract
// 3: 320 characters of an identifier, each up to 4 bytes).
func TestLongestCursorFits(t *testing.T) {
	c := Cursor{AsOf: example.AsOf, After: []value.Value{
		{Kind: value.Text, Text: strings.Repeat("😀", 320)}, {Kind: value.Text, Text: strings.Repeat("f", 36)},
		{Kind: value.Text, Text: "automated"}, {Kind: value.Day, Number: -700_000},
	}}
	if length := len(sealer.Seal("org", canonical, c)); length > query.MaxCursorLength {
		t.Errorf("agent_runs: %d characters", length)
	}
	// An email address has at most 320 octets (64 + @ + 255), its domain 255, a source 64 characters.
	c.After = []value.Value{
		{Kind: value.Text, Text: strings.Repeat("f", 36)}, {Kind: value.Text, Text: strings.Repeat("a", 320)},
		{Kind: value.Text, Text: strings.Repeat("a", 255)},
		{Kind: value.Text, Text: "associated"}, {Kind: value.Text, Text: "automated"},
		{Kind: value.Text, Text: strings.Repeat("😀", 64)},
		{Kind: value.Day, Number: -700_000},
	}
	if length := len(sealer.Seal("org", canonical, c)); length > query.MaxCursorLength {
		t.Errorf("agent_user_activity: %d characters", length)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(sealer.Seal("org", canonical, example))
	f.Add("")
	// found by fuzzing
	f.Add(sealer.Seal("org", canonical, example)[:20] + "\r" + sealer.Seal("org", canonical, example)[20:])
	f.Fuzz(func(t *testing.T, text string) {
		c, err := sealer.Open("org", canonical, text)
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Fatal(err)
		}
		if err == nil && sealer.Seal("org", canonical, c) != text {
			t.Fatalf("%q opens but is not what Seal writes", text)
		}
	})
}
