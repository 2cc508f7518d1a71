package clickhouse_test

import (
	"fmt"
	"os"
	"strings"
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

// An engine keeps no device open for writing but its terminal. Of /dev/null as the history of its session it would make
// root's own what everybody uses, when a line was typed.
func TestEngineWritesToNoDevice(t *testing.T) {
	dir := dataDir(t)
	open(t, config(dir))
	process := fmt.Sprintf("/proc/%d", enginePID(t, dir))
	descriptors, err := os.ReadDir(process + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	terminals := 0
	for _, d := range descriptors {
		name, _ := os.Readlink(process + "/fd/" + d.Name()) // gone by now, as of connections
		info, _ := os.ReadFile(process + "/fdinfo/" + d.Name())
		_, after, _ := strings.Cut(string(info), "flags:")
		var flags int
		_, _ = fmt.Sscanf(after, "%o", &flags)
		switch {
		case !strings.HasPrefix(name, "/dev/") || flags&unix.O_ACCMODE == unix.O_RDONLY:
		case strings.HasPrefix(name, "/dev/pts/") || name == "/dev/ptmx" || name == "/dev/pts/ptmx":
			terminals++
		default:
			t.Errorf("%s is open for writing", name)
		}
	}
	if terminals == 0 {
		t.Error("not even its terminal was found")
	}
}
