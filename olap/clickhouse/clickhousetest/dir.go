package clickhousetest

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	memoryDir = "/dev/shm"
	// memoryFree is how much of it must be free, in bytes: several packages' tests run at once, with up to some
	// hundred MB each.
	memoryFree = 4 << 30
)

// DataDir makes a new directory for an engine's data: in memory where there is enough, because every insert is synced
// to the disk, and else where temporary files belong. What a killed process wrote is there in both.
func DataDir() (string, error) {
	var stat unix.Statfs_t
	if unix.Statfs(memoryDir, &stat) == nil && uint64(stat.Bavail)*uint64(stat.Bsize) >= memoryFree {
		if dir, err := os.MkdirTemp(memoryDir, "runlens-engine-"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "runlens-engine-")
}
