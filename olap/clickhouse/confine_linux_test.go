package clickhouse_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What this build does without a grant, the kernel refuses to the engine's threads.
func TestEngineIsKeptToItsDirectory(t *testing.T) {
	const withNet = 4
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < withNet {
		t.Skip("this kernel's Landlock is older than version 4")
	}
	s := open(t, config(dataDir(t)))
	newOutside(t).expectRefused(t, s, []string{
		"SELECT file('FILE')",
		"SELECT file(materialize('FILE'))",
		"SELECT file('/etc/passwd')",
		"SELECT file('/proc/self/root/etc/passwd')",
		fmt.Sprintf("SELECT file('/proc/%d/environ')", os.Getpid()),
		tableOn("disk(type = 'local', path = 'DIR/new/')"),
		"RESTORE DATABASE other FROM S3('http://ADDR/bucket/x', 'key', 'secret')",
	})
}
