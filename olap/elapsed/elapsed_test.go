package elapsed_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/elapsed"
	"github.com/runlens/runlens/olap/olaptest"
)

func TestBetween(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		to   time.Time
		want time.Duration
	}{
		"awake":            {now.Add(time.Minute), time.Minute},
		"slept":            {olaptest.Slept(now.Add(time.Minute), time.Hour), time.Hour + time.Minute},
		"set back":         {olaptest.Slept(now.Add(time.Minute), -time.Hour), time.Minute},
		"no monotonic one": {now.Add(time.Minute).Round(0), time.Minute},
	} {
		if got := elapsed.Between(now, c.to); got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
