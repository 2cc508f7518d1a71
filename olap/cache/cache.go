// Package cache keeps what a server caches between queries: a bounded cache whose values expire, and groups of callers
// that share one execution. Both are safe for concurrent use.
package cache

import (
	"container/list"
	"sync"
	"time"
)

// A Cache keeps at most a number of values, each for at most a time. When it is full, the value that was put or read
// least recently is evicted. Use New.
type Cache[K comparable, V any] struct {
	most int
	age  time.Duration

	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of *entry[K, V], the least recent one at the back
}

type entry[K comparable, V any] struct {
	key   K
	value V
	at    time.Time
}

// New returns an empty cache for at most so many values (at least 1), each of which expires when it is age old.
func New[K comparable, V any](most int, age time.Duration) *Cache[K, V] {
	return &Cache[K, V]{most: most, age: age, entries: map[K]*list.Element{}}
}

// Get returns the value of a key, if there is one that has not expired.
func (c *Cache[K, V]) Get(key K) (value V, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, known := c.entries[key]
	if !known {
		return value, false
	}
	e := element.Value.(*entry[K, V])
	if time.Since(e.at) >= c.age {
		c.remove(element)
		return value, false
	}
	c.order.MoveToFront(element)
	return e.value, true
}

// Put keeps the value of a key in place of an earlier one.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.entries[key]; known {
		c.remove(element)
	} else if len(c.entries) >= c.most {
		c.remove(c.order.Back())
	}
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, time.Now()})
}

// Delete removes the value of a key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, known := c.entries[key]; known {
		c.remove(element)
	}
}

func (c *Cache[K, V]) remove(element *list.Element) {
	delete(c.entries, c.order.Remove(element).(*entry[K, V]).key)
}
