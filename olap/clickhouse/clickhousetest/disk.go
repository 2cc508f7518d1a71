package clickhousetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A Disk is a file system on a device of its own, whose power can be lost: what was not synced is gone then.
type Disk struct {
	Dir string // where it is mounted

	image string
}

// diskOptions keep the kernel from syncing by itself: its journal would be committed every five seconds.
const diskOptions = "loop,commit=3600"

// NewDisk makes a Disk that ends with t. The test is skipped where this user may not mount one.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{image: filepath.Join(t.TempDir(), "disk.img")}
	file, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("no file system can be made: %v %s", err, out)
	}
	d.Dir = mount(t, "-o", diskOptions, d.image)
	return d
}

// MemoryDisk returns the directory of a file system in memory that ends with t, of a size such as 24m. The test is
// skipped where this user may not mount one.
func MemoryDisk(t testing.TB, size string) (dir string) {
	t.Helper()
	return mount(t, "-t", "tmpfs", "-o", "size="+size, "tmpfs")
}

// ResizeMemoryDisk leaves as many bytes free on a MemoryDisk.
func ResizeMemoryDisk(t testing.TB, dir string, free uint64) {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	size := (stat.Blocks-stat.Bfree)*uint64(stat.Bsize) + free
	if out, err := exec.Command("mount", "-o", fmt.Sprint("remount,size=", size), dir).CombinedOutput(); err != nil {
		t.Fatalf("resize: %v %s", err, out)
	}
}

// LosePower returns a directory with what would be on the disk if its power was lost now. The engine of a data
// directory on the disk does not change while it is copied.
func (d *Disk) LosePower(t testing.TB, dataDir string) (dir string) {
	t.Helper()
	pid := enginePID(t, dataDir)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(t.TempDir(), "left.img")
	out, err := exec.Command("cp", "--sparse=always", d.image, left).CombinedOutput()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("copy the disk: %v %s", err, out)
	}
	return mount(t, "-o", diskOptions, left)
}

// mount runs the command of that name, with the directory as its last argument.
func mount(t testing.TB, args ...string) (dir string) {
	t.Helper()
	// Not t.TempDir: an engine that is still ending may leave a file behind once the file system is gone.
	dir, err := os.MkdirTemp("", "runlens-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() {
		// What still uses it ends by itself. The command, since only Linux has the system call.
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v %s", err, out)
		}
	})
	return dir
}
