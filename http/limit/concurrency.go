package limit

import (
	"sync"
	"time"
)

// A Concurrency caps what runs at once, per group and altogether. It is safe for concurrent use.
type Concurrency struct {
	perGroup, overall int

	mu      sync.Mutex
	running map[*slot]struct{}
	typical time.Duration // how long a slot is taken: a mean in which newer ones count more
}

type slot struct {
	group string
	began time.Time
}

// NewConcurrency returns caps of at most perGroup at once in a group and overall in all groups.
func NewConcurrency(perGroup, overall int) *Concurrency {
	return &Concurrency{perGroup: perGroup, overall: overall, running: map[*slot]struct{}{}}
}

// Acquire takes a slot for a group; release gives it back and does nothing when it is called again. Where no
// slot is free, release is nil and wait says when one should be: when the oldest of those that take
// the slots has taken as long as they usually do.
func (c *Concurrency) Acquire(group string, now time.Time) (release func(now time.Time), wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	inGroup := 0
	oldest, oldestInGroup := now, now
	for s := range c.running {
		if s.began.Before(oldest) {
			oldest = s.began
		}
		if s.group != group {
			continue
		}
		inGroup++
		if s.began.Before(oldestInGroup) {
			oldestInGroup = s.began
		}
	}
	switch {
	case inGroup >= c.perGroup:
		return nil, max(0, c.typical-now.Sub(oldestInGroup))
	case len(c.running) >= c.overall:
		return nil, max(0, c.typical-now.Sub(oldest))
	}
	s := &slot{group, now}
	c.running[s] = struct{}{}
	return func(now time.Time) { c.release(s, now) }, 0
}

// weight is the part of an older mean in a new one.
const weight = 0.9

func (c *Concurrency) release(s *slot, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.running[s]; !ok {
		return
	}
	delete(c.running, s)
	took := now.Sub(s.began)
	if c.typical == 0 {
		c.typical = took
	}
	c.typical = time.Duration(weight*float64(c.typical) + (1-weight)*float64(took))
}

// Typical is how long a slot is usually taken; 0 before the first one was given back.
func (c *Concurrency) Typical() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typical
}

// Running is how many slots are taken.
func (c *Concurrency) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running)
}
