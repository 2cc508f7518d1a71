package cache_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/olaptest"
)

func key(text string) cache.Key { return cache.KeyOf([]byte(text)) }

// A ward is a cache whose values a test expects.
type ward struct {
	*testing.T
	*cache.Cache[int]
}

func (w ward) has(owner string, keys ...string) {
	w.Helper()
	for _, k := range keys {
		if _, known := w.Get(owner, key(k)); !known {
			w.Errorf("%s has no %s", owner, k)
		}
	}
}

func (w ward) lacks(owner string, keys ...string) {
	w.Helper()
	for _, k := range keys {
		if v, known := w.Get(owner, key(k)); known {
			w.Errorf("%s still has %s: %d", owner, k, v)
		}
	}
}

// The least recent value of the owner with the most bytes is evicted, whoever puts another one.
func TestLeastRecentOfTheLargestOwnerIsEvicted(t *testing.T) {
	const part = 100_000
	c := ward{t, cache.New[int](5*part+5000, time.Hour)}
	for n := range 4 {
		c.Put("large", key(fmt.Sprint("k", n)), n, part)
	}
	c.Put("small", key("k0"), 7, part)
	c.has("large", "k0") // and so k1 is the least recent one
	c.Put("small", key("k1"), 8, part)
	c.lacks("large", "k1")
	c.has("large", "k0", "k2", "k3")
	c.has("small", "k0", "k1")
	c.Put("large", key("k4"), 4, part+part/5)
	c.lacks("large", "k0", "k2")
	c.has("large", "k3", "k4")
	c.Put("large", key("k5"), 5, 5*part/4+5000)
	c.lacks("large", "k5") // more than a quarter
	c.Put("small", key("k0"), 9, 1)
	if v, _ := c.Get("small", key("k0")); v != 9 {
		t.Errorf("%d, want the value that was put last", v)
	}
	c.Clear()
	c.lacks("small", "k0")
	c.Put("small", key("k0"), 1, part)
	c.has("small", "k0")
	c.lacks("large", "k0") // another owner's
}

// Lists of texts have one Key only if they are equal.
func TestKeys(t *testing.T) {
	of := func(texts ...string) cache.Key {
		var list [][]byte
		for _, text := range texts {
			list = append(list, []byte(text))
		}
		return cache.KeyOf(list...)
	}
	seen := map[cache.Key][]string{}
	for _, texts := range [][]string{{}, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"", "ab"}, {"ab", ""}, {"b", "a"},
		{"a\x00b"}, {"a", "\x00b"}} {
		if other, known := seen[of(texts...)]; known {
			t.Errorf("%q and %q have one key", texts, other)
		}
		seen[of(texts...)] = texts
	}
	if _, known := seen[of("a", "b")]; !known {
		t.Error("equal texts have two keys")
	}
}

// A value expires, and is freed although nobody reads the cache.
func TestValuesExpireUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int](1<<20, time.Hour)
		put := func(k string) { c.Put("acme", key(k), 1, 0) }
		put("old")
		time.Sleep(40 * time.Minute) // of the bubble's clock
		put("new")
		if _, known := c.Get("acme", key("old")); !known {
			t.Error("a value has expired too early")
		}
		time.Sleep(20 * time.Minute)
		if _, known := c.Get("acme", key("old")); known {
			t.Error("a value has not expired")
		}
		if _, known := c.Get("acme", key("new")); !known {
			t.Error("a value has expired with an older one")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := c.Len(); n != 0 {
			t.Errorf("%d expired values are kept", n)
		}
	})
}

// What a cache counts is what the heap holds, at most: many owners with one small value, one owner with many.
func TestBytesAreWhatIsRetained(t *testing.T) {
	const bound = 8 << 20
	for name, put := range map[string]func(c *cache.Cache[string], n int){
		"an owner each": func(c *cache.Cache[string], n int) {
			owner := strings.Repeat("o", 1<<10) + fmt.Sprintf("%064d", n)
			c.Put(owner[len(owner)-64:], key(fmt.Sprint(n)), "", 0) // a part of a long text
		},
		"one owner": func(c *cache.Cache[string], n int) { c.Put("acme", key(fmt.Sprint(n)), "", 0) },
		"long keys and texts": func(c *cache.Cache[string], n int) {
			value := strings.Repeat("v", 1000)
			c.Put("acme", key(strings.Repeat("k", 1<<10)+fmt.Sprint(n)), value, len(value)*9/8)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := olaptest.Heap()
			c := cache.New[string](bound, time.Hour)
			for n := range 40_000 {
				put(c, n)
			}
			taken := olaptest.Heap() - before
			t.Logf("%d values take %d KiB", c.Len(), taken>>10)
			if taken > bound || taken < bound/2 {
				t.Errorf("%d bytes are held by a cache of %d", taken, bound)
			}
			runtime.KeepAlive(c)
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	c := cache.New[int](4000, 0)
	kept := cache.New[int](4000, time.Hour)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range 1000 {
				k := key(fmt.Sprint((i * (n + 1)) % 20))
				for _, c := range []*cache.Cache[int]{c, kept} {
					c.Put(fmt.Sprint(i%3), k, i, 0)
					if value, known := c.Get(fmt.Sprint(i%3), k); known && value < 0 {
						t.Error("a value that nobody put")
					}
				}
				if i%100 == 0 {
					kept.Clear()
				}
			}
		})
	}
	group.Wait()
}

// Eviction takes as long with many owners as with few.
func BenchmarkEviction(b *testing.B) {
	for _, owners := range []int{10, 10_000} {
		b.Run(fmt.Sprint(owners), func(b *testing.B) {
			c := cache.New[int](owners*2000, time.Hour)
			for i := range 4 * owners {
				c.Put(fmt.Sprint(i%owners), key(fmt.Sprint(i)), 0, 0)
			}
			i := 0
			for b.Loop() {
				i++
				c.Put(fmt.Sprint(i%owners), key(fmt.Sprint("n", i)), 0, 0)
			}
		})
	}
}
