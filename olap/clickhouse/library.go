package clickhouse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	pins "github.com/runlens/runlens/deploy/engine"
)

// ErrNoLibrary is returned when the engine library is nowhere to be found.
var ErrNoLibrary = errors.New("the engine library is missing")

// LibraryBelow returns where `make engine` puts the library of this platform in the repository at
// root, or "" for a platform that has none.
func LibraryBelow(root string) string {
	pinned, found := pins.PackageFor(runtime.GOOS, runtime.GOARCH)
	if !found {
		return ""
	}
	return filepath.Join(root, "deploy", "engine", "node_modules", filepath.FromSlash(pinned.Name), pins.File)
}

// FetchedLibrary returns where `runlens engine fetch` puts the library of this platform and version in dir, or "" for a
// platform that has none.
func FetchedLibrary(dir string) string {
	pinned, found := pins.PackageFor(runtime.GOOS, runtime.GOARCH)
	if !found {
		return ""
	}
	return filepath.Join(dir, pinned.Version, pins.File)
}

// FetchDir returns where `runlens engine fetch` keeps libraries unless it is told otherwise: a folder of the user,
// below XDG_DATA_HOME or ~/.local/share.
func FetchDir() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // as the convention has it
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: set HOME or XDG_DATA_HOME", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "runlens", "engine"), nil
}

// findLibrary returns the absolute path of the engine library: named, or else the first of these.
//  1. The one of the repository that is the working directory or holds the executable's folder. It never searches
//     further up, so that no stranger's file in a shared folder is ever loaded.
//  2. The one in lib/runlens beside the executable's folder, where an administrator puts it for all users.
//  3. The one that the user fetched.
func findLibrary(named string) (string, error) {
	if named != "" {
		if !isFile(named) {
			return "", fmt.Errorf("%w: RUNLENS_ENGINE_LIB names %s, which is not a file; correct it, or unset it and run "+
				"`runlens engine fetch`", ErrNoLibrary, named)
		}
		return filepath.Abs(named)
	}
	if LibraryBelow("") == "" {
		return "", fmt.Errorf("%w: none is published for %s/%s; set RUNLENS_CLICKHOUSE_URL to a ClickHouse server",
			ErrNoLibrary, runtime.GOOS, runtime.GOARCH)
	}
	places := []string{LibraryBelow(".")}
	if executable, err := os.Executable(); err == nil {
		prefix := filepath.Dir(filepath.Dir(executable))
		places = append(places, LibraryBelow(prefix), FetchedLibrary(filepath.Join(prefix, "lib", "runlens")))
	}
	if dir, err := FetchDir(); err == nil {
		places = append(places, FetchedLibrary(dir))
	}
	for _, path := range places {
		if isFile(path) {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%w: run `runlens engine fetch` (`make engine` in a clone), or set RUNLENS_ENGINE_LIB to its "+
		"file, or RUNLENS_CLICKHOUSE_URL to a ClickHouse server", ErrNoLibrary)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
