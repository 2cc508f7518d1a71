package output

import (
	"testing"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A rate near 0 or 1, and a small difference of rates, does not read as a whole number.
func TestRatesAreNotRoundedToWholeNumbers(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 2.0 / 3: "0.6667", 0.9996: "0.9996", 0.99996: "0.99996", 0.00004: "0.00004",
		-0.00004: "-0.00004", -0.5: "-0.5", 999_999.0 / 1_000_000: "0.999999", 1.0 / 3_000_000: "0.0000003",
	} {
		if got := shown(report.Column{Kind: report.Number}, client.Float64Value(f)); got != want {
			t.Errorf("%v is shown as %s, want %s", f, got, want)
		}
	}
}
