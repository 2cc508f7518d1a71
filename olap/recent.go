package olap

import (
	"sync"
	"time"

	"github.com/runlens/runlens/schema"
)

// recordsOf names the records of an organization in a source table.
type recordsOf struct {
	organization schema.OrganizationID
	source       string
}

// A recent remembers what was read, for a while. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	age  time.Duration // how long
	most int           // how much, which bounds the memory

	mu    sync.Mutex
	known map[K]dated[V]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// get returns what is remembered.
func (r *recent[K, V]) get(of K) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.known[of]
	if !known || time.Since(last.at) >= r.age {
		return value, false
	}
	return last.value, true
}

func (r *recent[K, V]) put(of K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.known[of]; r.known == nil || len(r.known) >= r.most && !again {
		r.known = map[K]dated[V]{}
	}
	r.known[of] = dated[V]{value, time.Now()}
}
