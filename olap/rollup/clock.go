package rollup

import (
	"time"

	"github.com/runlens/runlens/olap/snapshot"
)

// A clockWatch compares the store's clock with the monotonic one of this process.
type clockWatch struct {
	store         time.Time // what the store's clock was
	before, after time.Time // by this process, before and after it was read
}

// setBack returns by how much the store's clock may have been set back since it was read last; 0 for less than the
// tolerance. It is certain if it was, however long this process was paused between a query and its answer.
func (w *clockWatch) setBack(before, store, after time.Time) (back time.Duration, certain bool) {
	last := *w
	*w = clockWatch{store, before, after}
	if last.before.IsZero() {
		return 0, false
	}
	if back = after.Sub(last.before) - store.Sub(last.store); back < snapshot.Tolerance {
		return 0, false
	}
	return back, before.Sub(last.after)-store.Sub(last.store) >= snapshot.Tolerance
}
