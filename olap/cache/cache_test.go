package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/cache"
)

func expect(t *testing.T, c *cache.Cache[string, int], key string, want int, known bool) {
	t.Helper()
	if got, ok := c.Get(key); got != want || ok != known {
		t.Errorf("%s is %d, %t; want %d, %t", key, got, ok, want, known)
	}
}

func TestLeastRecentIsEvicted(t *testing.T) {
	c := cache.New[string, int](2, time.Hour)
	c.Put("a", 1)
	c.Put("b", 2)
	expect(t, c, "a", 1, true) // so that b is the least recent
	c.Put("c", 3)
	expect(t, c, "b", 0, false)
	expect(t, c, "a", 1, true)
	c.Put("c", 4) // takes the place of its earlier value, and of no other
	expect(t, c, "a", 1, true)
	expect(t, c, "c", 4, true)
	c.Delete("c")
	c.Delete("nothing")
	expect(t, c, "c", 0, false)
	c.Put("d", 5)
	expect(t, c, "a", 1, true)
}

func TestValuesExpire(t *testing.T) {
	c := cache.New[string, int](2, 0)
	c.Put("a", 1)
	expect(t, c, "a", 0, false)
}

func TestConcurrentUse(t *testing.T) {
	c := cache.New[string, int](8, time.Hour)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range 1000 {
				key := fmt.Sprint((i * (n + 1)) % 20)
				c.Put(key, i)
				if value, known := c.Get(key); known && value < 0 {
					t.Error("a value that nobody put")
				}
				c.Delete(fmt.Sprint(i % 20))
			}
		})
	}
	group.Wait()
}
