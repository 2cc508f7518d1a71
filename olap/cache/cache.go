// Package cache keeps what a server caches between queries: a cache that is bounded in bytes and whose values expire,
// and groups of callers that share one execution. Both are safe for concurrent use, and neither keeps what a Key was
// made of.
package cache

import (
	"container/heap"
	"container/list"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A Cache keeps values of several owners, in a number of bytes altogether, each for at most a time. When they do not
// fit, the value is evicted that was put or read least recently by the owner whose values take the most bytes: no
// owner can drive out those of the others. Expired values are freed whether or not anybody reads them. Use New.
type Cache[V any] struct {
	most int
	age  time.Duration

	mu      sync.Mutex
	entries map[place]*entry[V]
	owners  map[string]*owner[V]
	largest owners[V]   // a heap
	byAge   list.List   // of *entry[V], the oldest one in front
	bytes   int         // of all entries and owners
	sweeper *time.Timer // nil while nothing is cached
}

// A place is where a value is found. The owner is a part of it, so that no key can reach another one's values.
type place struct {
	owner string
	key   Key
}

type entry[V any] struct {
	place  place
	value  V
	bytes  int
	at     time.Time
	of     *owner[V]
	recent *list.Element // in the owner's order
	aged   *list.Element // in byAge
}

// entryBytes and ownerBytes are what an entry and an owner take at most, besides the value and the name.
const (
	entryBytes = 400
	ownerBytes = 256
)

// New returns an empty cache of so many bytes, whose values expire when they are age old.
func New[V any](bytes int, age time.Duration) *Cache[V] {
	c := &Cache[V]{most: bytes, age: age}
	c.clear()
	return c
}

// Get returns the value of an owner's key, if there is one that has not expired.
func (c *Cache[V]) Get(owner string, key Key) (value V, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[place{owner, key}]
	if e == nil || time.Since(e.at) >= c.age {
		return value, false
	}
	e.of.order.MoveToFront(e.recent)
	return e.value, true
}

// Put keeps the value of an owner's key in place of an earlier one. bytes is what the value refers to, besides its own
// size. A value that takes more than a quarter of the cache is not kept.
func (c *Cache[V]) Put(owner string, key Key, value V, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[place{owner, key}])
	bytes += entryBytes + int(unsafe.Sizeof(value))
	if bytes > c.most/4 {
		return
	}
	o := c.ownerOf(owner)
	e := &entry[V]{place: place{o.name, key}, value: value, bytes: bytes, at: time.Now(), of: o}
	e.recent, e.aged = o.order.PushFront(e), c.byAge.PushBack(e)
	c.entries[e.place] = e
	c.grow(o, bytes)
	for c.bytes > c.most {
		c.remove(c.largest[0].order.Back().Value.(*entry[V]))
	}
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.age, c.sweep)
	}
}

// Bytes is what the values take.
func (c *Cache[V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Clear removes all values.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *Cache[V]) clear() {
	c.entries, c.owners = map[place]*entry[V]{}, map[string]*owner[V]{}
	c.largest, c.bytes = nil, 0
	c.byAge.Init()
}

// sweepParts is into how many parts sweeps divide the time of a value: it stays so much longer at most.
const sweepParts = 8

// sweep removes the values that have expired, and comes again as long as there are others.
func (c *Cache[V]) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for front := c.byAge.Front(); front != nil; front = c.byAge.Front() {
		left := c.age - time.Since(front.Value.(*entry[V]).at)
		if left > 0 {
			c.sweeper.Reset(max(left, c.age/sweepParts))
			return
		}
		c.remove(front.Value.(*entry[V]))
	}
	c.sweeper = nil
	c.clear() // the maps keep the size that they had
}

// remove removes an entry; nil for none.
func (c *Cache[V]) remove(e *entry[V]) {
	if e == nil {
		return
	}
	delete(c.entries, e.place)
	c.byAge.Remove(e.aged)
	e.of.order.Remove(e.recent)
	c.grow(e.of, -e.bytes)
	if e.of.order.Len() == 0 {
		c.bytes -= ownerBytes + len(e.of.name)
		heap.Remove(&c.largest, e.of.at)
		delete(c.owners, e.of.name)
	}
}

// ownerOf returns the owner of a name, a new one if there is none.
func (c *Cache[V]) ownerOf(name string) *owner[V] {
	o := c.owners[name]
	if o == nil {
		o = &owner[V]{name: strings.Clone(name)} // a part of a longer text would keep all of that
		c.owners[o.name] = o
		c.bytes += ownerBytes + len(o.name)
		heap.Push(&c.largest, o)
	}
	return o
}

// grow counts more bytes of an owner's values, or less.
func (c *Cache[V]) grow(o *owner[V], bytes int) {
	o.bytes, c.bytes = o.bytes+bytes, c.bytes+bytes
	heap.Fix(&c.largest, o.at)
}

// An owner has the values of one owner of a Cache.
type owner[V any] struct {
	name  string
	order list.List // of *entry[V], the least recent one at the back
	bytes int       // of its entries
	at    int       // its place in the heap
}

// owners are a heap (package heap) with the owner of the most bytes in front.
type owners[V any] []*owner[V]

func (o owners[V]) Len() int           { return len(o) }
func (o owners[V]) Less(i, j int) bool { return o[i].bytes > o[j].bytes }

func (o owners[V]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

func (o *owners[V]) Push(x any) {
	x.(*owner[V]).at = len(*o)
	*o = append(*o, x.(*owner[V]))
}

func (o *owners[V]) Pop() any {
	last := (*o)[len(*o)-1]
	(*o)[len(*o)-1] = nil
	*o = (*o)[:len(*o)-1]
	return last
}
