package clickhouse

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readablePaths is what the engine's threads may read besides their directory and their library: their own process, the
// machine's measures, sources of randomness, and libraries that glibc loads late. Not all of /proc: it shows the
// environment of the user's other processes.
var readablePaths = []string{
	"/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/uptime", "/proc/loadavg",
	"/proc/sys/vm", "/proc/sys/fs", "/sys/fs/cgroup", "/sys/devices/system",
	"/dev/random", "/dev/urandom", "/dev/zero", "/usr/lib", "/usr/lib64", "/lib", "/lib64",
}

const (
	landlockWithRefer = 2 // the version of Landlock that can allow a rename into another directory, which the engine needs
	landlockWithNet   = 4 // the version that covers connections

	accessRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE
	// accessFile is all that a rule on a plain file may name.
	accessFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	// accessAll is every access that version 2 of Landlock has: all bits up to the one for renaming into another
	// directory.
	accessAll = unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1
)

// confined runs f on a thread that, with every thread it starts, is kept to the files of dir and out of the network: it
// may listen, but not connect. Threads of Go are started elsewhere and stay free.
//
// It is there for what grants do not cover. This build takes the engine for a command-line tool, whose function
// file(path) reads any file of its user without a grant, and whose RESTORE connects without one. Where the kernel has
// no Landlock (Linux before 5.19) f just runs.
func confined(dir, library string, f func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		err := confine(dir, library)
		if err == nil {
			err = f()
		}
		ended <- err
	}()
	return <-ended
}

// confine sets the bounds of the calling thread.
func confine(dir, library string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < landlockWithRefer {
		return nil
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: accessAll}
	if version >= landlockWithNet {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer unix.Close(int(ruleset))
	if err := allow(int(ruleset), dir, accessAll); err != nil {
		return err
	}
	for _, path := range append(readablePaths, library) {
		if err := allow(int(ruleset), path, accessRead); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// allow adds a rule: access to path and, where it is a directory, to all below it. The descriptor stays open, since
// a rule belongs to an inode, and /proc/self would get another one when the kernel is short of memory.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= accessFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE,
		uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return &os.PathError{Op: "landlock", Path: path, Err: errno}
	}
	return nil
}
