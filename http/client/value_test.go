package client_test

import (
	"encoding/json"
	"testing"

	"github.com/runlens/runlens/http/client"
)

// Numbers keep the digits they came with; every value goes back to JSON as it came.
func TestValues(t *testing.T) {
	for _, text := range []string{
		`null`, `"a\"ü"`, `""`, `0`, `-1`, `0.1`, `1e-7`,
		`9007199254740993`, `9223372036854775807`, `18446744073709551616`,
	} {
		var v client.Value
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if back, err := json.Marshal(v); err != nil || string(back) != text {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	var v client.Value
	if err := json.Unmarshal([]byte(`9007199254740993`), &v); err != nil {
		t.Fatal(err)
	}
	if n, ok := v.Int64(); !ok || n != 9007199254740993 {
		t.Errorf("%d %t", n, ok)
	}
	for _, text := range []string{`true`, `{}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
