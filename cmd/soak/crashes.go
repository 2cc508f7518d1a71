package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

// crashes are when the engine was killed.
type crashes struct {
	lock    sync.Mutex
	at      []time.Time
	longest time.Duration
}

func (c *crashes) add(at time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.at = append(c.at, at)
}

func (c *crashes) count() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.at)
}

// during reports whether a span of time, both ends inclusive, meets the window after a kill.
func (c *crashes) during(from, to time.Time) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, at := range c.at {
		if !to.Before(at) && !from.After(at.Add(crashWindow)) {
			return true
		}
	}
	return false
}

// excuse reports whether an answer is a 500 to a request that was in flight in the window after a kill.
func (c *crashes) excuse(a answer) bool {
	if a.status != http.StatusInternalServerError || !c.during(a.sent, a.arrived) {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.longest = max(c.longest, a.sent.Sub(c.at[len(c.at)-1]))
	return true
}

// outage is how long after a kill a request was sent, at most, that was answered with 500.
func (c *crashes) outage() time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.longest
}

// killEvery kills the engine at an interval until end is done, the first time in the middle of the first such span.
func (c *crashes) killEvery(end context.Context, interval time.Duration, product process.Product, failed *examples) {
	for wait := interval / 2; harness.Pause(end, wait); wait = interval {
		c.add(time.Now())
		if err := product.KillEngine(); err != nil {
			failed.add("%v", err)
		}
	}
}
