package output

import "testing"

// A rate that is not 0 or 1 never reads as none or all.
func TestRatesNearNoneAndAll(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		decimals int
		want     string
	}{
		{0, 1, "0%"}, {1, 1, "100%"}, {0.8, 1, "80%"}, {2.0 / 3, 1, "66.7%"}, {2.0 / 3, 2, "66.67%"}, {0.0625, 1, "6.3%"},
		{0.9996, 1, "99.96%"}, {0.99994, 2, "99.99%"}, {999_999.0 / 1_000_000, 1, "99.9999%"}, {0.0004, 1, "0.04%"},
		{1.0 / 3_000_000, 1, "0.00003%"}, {0.999, 1, "99.9%"}, {0.9994, 1, "99.9%"}, {0.0005, 1, "0.1%"},
	} {
		if got := RateText(c.rate, c.decimals); got != c.want {
			t.Errorf("%v with %d decimals is %s, want %s", c.rate, c.decimals, got, c.want)
		}
	}
}
