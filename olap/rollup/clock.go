package rollup

import "time"

// A clockWatch compares the store's clock with one that always goes on.
type clockWatch struct{ store, here time.Time }

// tolerance is how far the clocks may differ between two looks without a reason to refresh again; less than margin.
const tolerance = Margin / 2

// setBack returns by how much the store's clock was set back since the last look; 0 for not, or for less
// than the tolerance.
func (w *clockWatch) setBack(store time.Time) time.Duration {
	last := *w
	*w = clockWatch{store: store, here: time.Now()}
	if last.here.IsZero() {
		return 0
	}
	back := w.here.Sub(last.here) - store.Sub(last.store)
	if back < tolerance {
		return 0
	}
	return back
}
