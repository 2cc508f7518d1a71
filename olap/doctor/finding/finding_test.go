package finding_test

import (
	"testing"

	"github.com/runlens/runlens/olap/doctor/finding"
)

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"failed to connect to `x`:\n\t10.0.0.1:1: refused\n\t10.0.0.2:1: refused": "failed to connect to `x`: " +
			"10.0.0.1:1: refused; 10.0.0.2:1: refused",
		"one\r\n\n  two\n": "one; two",
		"one  line":        "one  line",
		"":                 "",
	} {
		if got := finding.OneLine(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
