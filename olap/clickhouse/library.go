package clickhouse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ErrNoLibrary is returned when the engine library is nowhere to be found.
var ErrNoLibrary = errors.New("the engine library is missing")

// libraryPackages names the folder of the engine library under deploy/engine/node_modules/@chdb
// for every platform that has one (deploy/engine/package.json).
var libraryPackages = map[string]string{
	"linux/amd64":  "lib-linux-x64-gnu",
	"linux/arm64":  "lib-linux-arm64-gnu",
	"darwin/amd64": "lib-darwin-x64",
	"darwin/arm64": "lib-darwin-arm64",
}

// LibraryBelow returns where `make engine` puts the library of this platform in the repository at
// root, or "" for a platform that has none.
func LibraryBelow(root string) string {
	name, ok := libraryPackages[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return ""
	}
	return filepath.Join(root, "deploy", "engine", "node_modules", "@chdb", name, "libchdb.so")
}

// findLibrary returns the absolute path of the engine library: named, or else the one of the repository that is the
// working directory or holds the executable's folder. It never searches further up, so that no stranger's file in a
// shared folder is ever loaded.
func findLibrary(named string) (string, error) {
	if named != "" {
		if !isFile(named) {
			return "", fmt.Errorf("%w: RUNLENS_ENGINE_LIB names %s, which is not a file; correct it, or unset it and run "+
				"`make engine`", ErrNoLibrary, named)
		}
		return filepath.Abs(named)
	}
	if LibraryBelow("") == "" {
		return "", fmt.Errorf("%w: none is published for %s/%s; set RUNLENS_CLICKHOUSE_URL to a ClickHouse server",
			ErrNoLibrary, runtime.GOOS, runtime.GOARCH)
	}
	roots := []string{"."}
	if executable, err := os.Executable(); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(executable)))
	}
	for _, root := range roots {
		if path := LibraryBelow(root); isFile(path) {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%w: run `make engine`, or set RUNLENS_ENGINE_LIB to its file, or RUNLENS_CLICKHOUSE_URL to a "+
		"ClickHouse server", ErrNoLibrary)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
