package olap

import (
	"sync"
	"time"

	"github.com/runlens/runlens/schema"
)

// maxRecent bounds the memory.
const maxRecent = 10_000

// recordsOf names the records of an organization in a source table.
type recordsOf struct {
	organization schema.OrganizationID
	source       string
}

// A recent remembers what was read of organizations' records, for a while. The zero recent is empty. It is safe for concurrent use.
type recent[V any] struct {
	mu    sync.Mutex
	known map[recordsOf]dated[V]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// get returns what is younger than maxAge.
func (r *recent[V]) get(of recordsOf, maxAge time.Duration) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.known[of]
	if !known || time.Since(last.at) >= maxAge {
		return value, false
	}
	return last.value, true
}

func (r *recent[V]) put(of recordsOf, value V, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRecent {
		r.known = map[recordsOf]dated[V]{}
	}
	r.known[of] = dated[V]{value, at}
}
