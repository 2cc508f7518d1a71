package limit

import "sync"

// A Concurrency caps what runs at once, per group and altogether. It is safe for concurrent use.
type Concurrency struct {
	perGroup, overall int

	mu      sync.Mutex
	running map[string]int
	total   int
}

// NewConcurrency returns caps of at most perGroup at once in a group and overall in all groups.
func NewConcurrency(perGroup, overall int) *Concurrency {
	return &Concurrency{perGroup: perGroup, overall: overall, running: map[string]int{}}
}

// Acquire takes a slot for a group, or reports false at once. The slot is free again after release.
func (c *Concurrency) Acquire(group string) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[group] >= c.perGroup || c.total >= c.overall {
		return nil, false
	}
	c.running[group]++
	c.total++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.total--
		if c.running[group]--; c.running[group] == 0 {
			delete(c.running, group)
		}
	}), true
}

// Running is how many slots are taken.
func (c *Concurrency) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}
