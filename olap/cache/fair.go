package cache

import (
	"container/list"
	"sync"
)

// A Fair keeps values of several owners, in a number of bytes altogether. When they do not fit, the value is evicted
// that was put or read least recently by the owner whose values take the most bytes: no owner can drive out those of
// the others. Use NewFair. It is safe for concurrent use.
type Fair[V any] struct {
	most int

	mu     sync.Mutex
	owners map[string]*owned[V]
	bytes  int
}

// An owned has the values of an owner.
type owned[V any] struct {
	name    string
	entries map[string]*list.Element
	order   list.List // of *sized[V], the least recent one at the back
	bytes   int
}

type sized[V any] struct {
	key   string
	value V
	bytes int
}

// NewFair returns an empty cache of so many bytes.
func NewFair[V any](most int) *Fair[V] { return &Fair[V]{most: most, owners: map[string]*owned[V]{}} }

// Get returns the value of an owner's key, if there is one.
func (f *Fair[V]) Get(owner, key string) (value V, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.owners[owner]
	if o == nil || o.entries[key] == nil {
		return value, false
	}
	o.order.MoveToFront(o.entries[key])
	return o.entries[key].Value.(*sized[V]).value, true
}

// Put keeps the value of an owner's key, of so many bytes, in place of an earlier one. One that is larger than a
// quarter of the cache is not kept.
func (f *Fair[V]) Put(owner, key string, value V, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.owners[owner]; o != nil && o.entries[key] != nil {
		f.remove(o, o.entries[key])
	}
	if bytes > f.most/4 {
		return
	}
	o := f.owners[owner]
	if o == nil {
		o = &owned[V]{name: owner, entries: map[string]*list.Element{}}
		f.owners[owner] = o
	}
	o.entries[key] = o.order.PushFront(&sized[V]{key, value, bytes})
	o.bytes, f.bytes = o.bytes+bytes, f.bytes+bytes
	for f.bytes > f.most {
		largest := o
		for _, other := range f.owners {
			if other.bytes > largest.bytes {
				largest = other
			}
		}
		f.remove(largest, largest.order.Back())
	}
}

// Clear removes all values.
func (f *Fair[V]) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owners, f.bytes = map[string]*owned[V]{}, 0
}

func (f *Fair[V]) remove(o *owned[V], element *list.Element) {
	s := o.order.Remove(element).(*sized[V])
	delete(o.entries, s.key)
	o.bytes, f.bytes = o.bytes-s.bytes, f.bytes-s.bytes
	if len(o.entries) == 0 {
		delete(f.owners, o.name)
	}
}
