package normalize

import (
	"errors"
	"strings"
	"testing"
)

// identified is a line's raw record with another text in the field of the identifier.
func identified(t *testing.T, line, field, text string) *Raw {
	t.Helper()
	raw := new(Raw)
	if err := ReadJSON([]byte(line), raw); err != nil {
		t.Fatal(err)
	}
	raw.Values[fieldIndex(raw.Kind, field)] = []byte(text)
	return raw
}

// Contract 3: white space around an identifier is removed, then its length counts. Whether a record is right does not
// depend on what was read before it.
func TestIdentifiersAreJudgedAlone(t *testing.T) {
	const right, wrongLength, wrongText = "", "must have at most 320 characters, not 321", "is not valid UTF-8"
	const noPerson = "must be an email address or a phone number in E.164 form such as +15550100"
	spaces := strings.Repeat(" ", 400)
	for _, c := range []struct{ name, text, initiator, person string }{
		{"an address", "ada@example.com", right, right},
		{"an address and 400 spaces", "ada@example.com" + spaces, right, right},
		{"320 characters between spaces", spaces + strings.Repeat("é", 320) + spaces, right, noPerson},
		{"321 characters", strings.Repeat("é", 321), wrongLength, wrongLength},
		{"321 characters and spaces", strings.Repeat("é", 321) + spaces, wrongLength, wrongLength},
		{"an address of 321 characters", strings.Repeat("a", 309) + "@example.com", wrongLength, wrongLength},
		{"the name of a job", "cron", right, noPerson},
		{"spaces", spaces, right, noPerson},
		{"an address with a wrong byte", "a@\xff.com", wrongText, wrongText},
		{"another wrong byte", "a@\xfe.com", wrongText, wrongText},
		{"a name with a wrong byte", "cron \xc3", wrongText, wrongText},
		{"a wrong byte between spaces", " \xff ", wrongText, wrongText},
	} {
		run := func(n *Normalizer) {
			err := n.Check(identified(t, runLine, "initiator_identifier", c.text))
			checkReason(t, c.name+" as initiator", err, "initiator_identifier", c.initiator)
		}
		attribution := func(n *Normalizer) {
			err := n.Check(identified(t, attrLine, "user_identifier", c.text))
			checkReason(t, c.name+" as person", err, "user_identifier", c.person)
		}
		n := NewNormalizer()
		run(n)
		attribution(n)
		run(n)
		n = NewNormalizer()
		attribution(n)
		run(n)
		attribution(n)
	}
}

func checkReason(t *testing.T, name string, err error, field, want string) {
	t.Helper()
	var rejected *Error
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: rejected: %v", name, err)
	case want != "" && (!errors.As(err, &rejected) || *rejected != Error{field, want}):
		t.Errorf("%s: got %v, want %s: %s", name, err, field, want)
	}
}

// A wrong byte is a fault of every field of every kind, whatever a rule does to the text before.
func TestWrongBytesAreRejected(t *testing.T) {
	for _, line := range []string{agentLine, runLine, attrLine} {
		var whole Raw
		if err := ReadJSON([]byte(line), &whole); err != nil {
			t.Fatal(err)
		}
		for i, field := range Fields(whole.Kind) {
			for _, text := range []string{"\xff", string(whole.Values[i]) + "\xff", "\xff" + string(whole.Values[i])} {
				raw := whole
				raw.Values[i] = []byte(text)
				var rejected *Error
				if err := NewNormalizer().Check(&raw); !errors.As(err, &rejected) || rejected.Field != field {
					t.Errorf("%s %s %q: got %v, want a fault of the field", raw.Kind, field, text, err)
				}
			}
		}
	}
}
