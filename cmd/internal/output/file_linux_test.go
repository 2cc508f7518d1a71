package output

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// as runs f as another user, on a thread that ends with it.
func as(t *testing.T, user int, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	done := make(chan syscall.Errno)
	go func() {
		runtime.LockOSThread() // without an end: the thread is not used again
		_, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user))
		if failed == 0 {
			f()
		}
		done <- failed
	}()
	if failed := <-done; failed != 0 {
		t.Fatal(failed)
	}
}

// In a folder as /tmp is, a file is written only where nobody else has chosen its permissions, and who reads it.
func TestOthersChooseNoPermissions(t *testing.T) {
	const mine, theirs = 65533, 65534
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	create := func(user int, name string) (mode os.FileMode, err error) {
		as(t, user, func() {
			var file *File
			if file, err = Create(in(name)); err != nil {
				return
			}
			err = file.Fill(func(w io.Writer) error {
				_, err := io.WriteString(w, "rows")
				return err
			})
		})
		if err == nil {
			var info os.FileInfo
			if info, err = os.Stat(in(name)); err == nil {
				mode = info.Mode().Perm()
			}
		}
		return mode, err
	}
	put := func(name string, user int, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(in(name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(in(name), user, 0); err != nil {
			t.Fatal(err)
		}
	}
	put("mine.csv", mine, 0o664)
	put("theirs.csv", theirs, 0o666)
	put("target", mine, 0o600)
	if err := os.Symlink(in("target"), in("link.csv")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe.csv"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.csv", "pipe.csv"} {
		if err := os.Lchown(in(name), theirs, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs.csv", "link.csv", "pipe.csv"} {
		if _, err := create(mine, name); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s in a sticky folder: %v", name, err)
		}
	}
	for name, content := range map[string]string{"theirs.csv": "before", "target": "before"} {
		if got, err := os.ReadFile(in(name)); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]os.FileMode{
		"new.csv":  0o600,
		"mine.csv": 0o664,
	} {
		if mode, err := create(mine, name); err != nil || mode != want {
			t.Errorf("%s has the permissions %o, %v, want %o", name, mode, err, want)
		}
	}
	// The superuser may replace everybody's.
	if mode, err := create(0, "theirs.csv"); err != nil || mode != 0o600 {
		t.Errorf("root's file has the permissions %o, %v", mode, err)
	}
	put("theirs.csv", theirs, 0o666)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if mode, err := create(mine, "theirs.csv"); err != nil || mode != 0o600 {
		t.Errorf("in place of another's file: %o, %v", mode, err)
	}
	// A group that the writer is not in cannot read the new file either.
	put("group.csv", mine, 0o640)
	if err := os.Chown(in("group.csv"), mine, 12345); err != nil {
		t.Fatal(err)
	}
	if mode, err := create(mine, "group.csv"); err != nil || mode != 0o600 {
		t.Errorf("of another group: %o, %v", mode, err)
	}
	if left, _ := filepath.Glob(in("*.partial")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// An error names the path that was given, not the file that was to take its place.
func TestErrorsNameThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere", "x.csv")
	if _, err := Create(path); err == nil || err.Error() != path+": no such file or directory" {
		t.Error(err)
	}
	path = filepath.Join(t.TempDir(), "x.csv")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	file.file.Close()
	if _, err := file.Write([]byte("a")); err == nil || strings.Contains(err.Error(), "partial") {
		t.Error(err)
	}
	if err := file.keep(); err == nil || strings.Contains(err.Error(), "partial") {
		t.Error(err)
	}
}
