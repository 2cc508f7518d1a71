package console

import (
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// A quantile is within the bound of its bucket; the last bucket has none.
func TestQuantiles(t *testing.T) {
	count, bounds, below := uint64(4), []float64{0.128, 2.048, math.Inf(1)}, []uint64{2, 3, 4}
	h := &dto.Histogram{SampleCount: &count}
	for i := range bounds {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: &below[i]})
	}
	for q, want := range map[float64]string{0.5: "up to 128 ms", 0.75: "up to 2048 ms", 0.99: "more than 2048 ms"} {
		if got := quantile(h, q); got != want {
			t.Errorf("%v of the answers came %q, want %q", q, got, want)
		}
	}
}

// A row that is dated in the future is something to look at: no age shows then that nothing is copied any longer.
func TestNewestRowInTheFuture(t *testing.T) {
	for lag, want := range map[float64]string{90: "1 min good", -97_493_066: "in the future look"} {
		m := metrics{map[string]*dto.MetricFamily{
			"runlens_ingest_lag_seconds": {Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &lag}}}},
		}}
		if f := m.facts()[0]; f.Value+" "+f.State != want {
			t.Errorf("a lag of %v s is shown as %+v, want %s", lag, f, want)
		}
	}
}
