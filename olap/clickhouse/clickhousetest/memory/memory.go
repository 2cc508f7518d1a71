// Package memory has the folders of databases in tests: in memory where there is enough of it.
package memory

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	place = "/dev/shm"
	// enough is how much of it must be free, in bytes: several packages' tests run at once, with up to some hundred MB
	// each.
	enough = 4 << 30

	patience = time.Minute // of a removal
)

// NewDir makes a new folder, whose name begins with prefix: in memory where there is enough, because databases sync
// every insert to the disk, and ext4 takes its time for thousands of files that come and go; else where temporary
// files belong. What a killed process wrote is there in both.
func NewDir(prefix string) (string, error) {
	var stat unix.Statfs_t
	if unix.Statfs(place, &stat) == nil && uint64(stat.Bavail)*uint64(stat.Bsize) >= enough {
		if dir, err := os.MkdirTemp(place, prefix); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", prefix)
}

// TempDir makes a new folder that is removed when t ends: an engine that writes there ends a moment after its last
// user.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := NewDir("runlens-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); os.RemoveAll(dir) != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
	})
	return dir
}
