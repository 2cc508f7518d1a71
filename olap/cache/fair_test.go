package cache_test

import (
	"fmt"
	"testing"

	"github.com/runlens/runlens/olap/cache"
)

// The least recent value of the owner with the most bytes is evicted, whoever puts another one.
func TestFair(t *testing.T) {
	f := cache.NewFair[int](100)
	has := func(owner string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if _, known := f.Get(owner, key); !known {
				t.Errorf("%s has no %s", owner, key)
			}
		}
	}
	lacks := func(owner, key string) {
		t.Helper()
		if v, known := f.Get(owner, key); known {
			t.Errorf("%s still has %s: %d", owner, key, v)
		}
	}
	for n := range 4 {
		f.Put("large", fmt.Sprint("k", n), n, 20)
	}
	f.Put("small", "k0", 7, 20)
	has("large", "k0") // and so k1 is the least recent one
	f.Put("small", "k1", 8, 20)
	lacks("large", "k1")
	has("large", "k0", "k2", "k3")
	has("small", "k0", "k1")
	f.Put("large", "k4", 4, 25)
	lacks("large", "k0")
	lacks("large", "k2")
	has("large", "k3", "k4")
	f.Put("large", "k5", 5, 26)
	lacks("large", "k5") // more than a quarter
	f.Put("small", "k0", 9, 1)
	if v, _ := f.Get("small", "k0"); v != 9 {
		t.Errorf("%d, want the value that was put last", v)
	}
	f.Clear()
	lacks("small", "k0")
	f.Put("small", "k0", 1, 25)
	has("small", "k0")
}
