// Package engine says which package of npm has the embedded engine's library, as the lock file beside it pins it.
package engine

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed package-lock.json
var lockFile []byte

// File is the name of the library in its package.
const File = "libchdb.so"

// A Package is one version of a package of npm.
type Package struct {
	Name    string // such as @chdb/lib-linux-x64-gnu
	Version string
	// Integrity is the SHA-512 of the packed package as npm writes it: sha512- and 64 bytes in base 64. It is empty where
	// nobody has looked it up yet.
	Integrity string
}

// names are the packages by operating system and architecture, as Go calls them.
var names = map[string]string{
	"linux/amd64":  "@chdb/lib-linux-x64-gnu",
	"linux/arm64":  "@chdb/lib-linux-arm64-gnu",
	"darwin/amd64": "@chdb/lib-darwin-x64",
	"darwin/arm64": "@chdb/lib-darwin-arm64",
}

// PackageFor returns the package for a platform, and whether there is one.
func PackageFor(system, architecture string) (Package, bool) {
	name, found := names[system+"/"+architecture]
	if !found {
		return Package{}, false
	}
	pinned := locked()["node_modules/"+name]
	return Package{name, pinned.Version, pinned.Integrity}, true
}

// locked are the packages of the lock file, by their folders.
var locked = sync.OnceValue(func() map[string]struct{ Version, Integrity string } {
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(lockFile, &lock); err != nil {
		panic(err) // a test reads it
	}
	return lock.Packages
})
