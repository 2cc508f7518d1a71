package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// A module needs a licence, every one that it has must be on the list, and none may be of the GNU family.
func TestLicences(t *testing.T) {
	const (
		mit  = "Permission is hereby granted, free of charge, to any person\n obtaining a copy of this   software and so on"
		bsd  = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that"
		gpl  = "GNU GENERAL PUBLIC LICENSE\nVersion 3"
		agpl = "GNU AFFERO GENERAL PUBLIC LICENSE"
		mpl  = "Mozilla Public License Version 2.0 … the GNU General Public License, Version 2.0"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  string // a licence, or with ! words of the failure
	}{
		"MIT":              {map[string]string{"LICENSE": mit, "README": gpl}, "MIT"},
		"British":          {map[string]string{"licence.md": bsd}, "BSD"},
		"quoted":           {map[string]string{"LICENSE": "It is BSD:\n\n> " + strings.ReplaceAll(bsd, "\n", "\n> ")}, "BSD"},
		"MPL":              {map[string]string{"COPYING": mpl}, "MPL-2.0"},
		"none":             {map[string]string{"README": mit}, "!has no licence file"},
		"GPL":              {map[string]string{"LICENSE": gpl}, "!gnu general public license"},
		"GPL with MIT":     {map[string]string{"LICENSE-MIT": mit, "COPYING": gpl}, "!COPYING: is under the gnu"},
		"AGPL in one file": {map[string]string{"LICENSE": mit + "\n" + agpl}, "!gnu affero"},
		"unknown":          {map[string]string{"LICENSE": "All rights reserved."}, "!not on the list"},
		"code":             {map[string]string{"LICENSE": mit, "license.go": "package x"}, "MIT"},
	} {
		dir := fstest.MapFS{}
		for path, text := range c.files {
			dir[path] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := licenceOf(dir)
		if words, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// Every package of a lock file has a version and a sha512 checksum and no download address, and every platform is
// there.
func TestLockFiles(t *testing.T) {
	sum := `"sha512-` + strings.Repeat("A", 86) + `=="`
	entry := func(fields string) string {
		return `{"packages":{"":{"version":"1"},"node_modules/@x/linux":{"version":"1",` + fields + `}}}`
	}
	for name, c := range map[string]struct{ text, says string }{
		"right":            {entry(`"integrity":` + sum), ""},
		"no checksum":      {entry(`"os":[]`), "@x/linux has no sha512 checksum"},
		"weak checksum":    {entry(`"integrity":"sha1-AAAA"`), "@x/linux has no sha512 checksum"},
		"short checksum":   {entry(`"integrity":"sha512-AAAA=="`), "@x/linux has no sha512 checksum"},
		"address":          {entry(`"resolved":"https://example.com/x.tgz","integrity":` + sum), "download address"},
		"link":             {entry(`"link":true,"integrity":` + sum), "download address"},
		"platform missing": {`{"packages":{}}`, "lacks @x/linux"},
		"no JSON":          {`{`, "package-lock.json"},
		"no longer needed": {strings.Replace(entry(`"integrity":`+sum), "}}}",
			`},"node_modules/`+withoutChecksum[0]+`":{"version":"1","integrity":`+sum+`}}}`, 1), "take it out"},
	} {
		var found findings
		checkLock(&found, "folder", []string{"@x/linux"}, []byte(c.text))
		if said := strings.Join(found.faults, "\n"); (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: found %q, want %q", name, said, c.says)
		}
	}
}

// The lock files of this repository; a checksum that is taken away is missed.
func TestLockFilesOfThisRepository(t *testing.T) {
	t.Chdir("../..")
	if found := lockFiles(t.Context()); len(found.faults) > 0 || len(found.warnings) != len(withoutChecksum) {
		t.Errorf("%q", found)
	}
	for folder, platforms := range lockFolders {
		text, err := os.ReadFile(folder + "/package-lock.json")
		if err != nil {
			t.Fatal(err)
		}
		var found findings
		if checkLock(&found, folder, platforms, []byte(strings.Replace(string(text), `"integrity"`, `"other"`, 1))); len(
			found.faults,
		) != 1 {
			t.Errorf("%s without a checksum: %q", folder, found)
		}
	}
}

// No package that npm fetches runs a script of its own.
func TestPackagesRunNoScripts(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	fetches := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "npm ci ") {
			fetches++
			if !strings.Contains(line, " --ignore-scripts") {
				t.Errorf("scripts may run: %s", line)
			}
		}
	}
	if fetches != len(lockFolders) {
		t.Errorf("the Makefile fetches %d times for %d lock files", fetches, len(lockFolders))
	}
}

type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
func (e exit) ExitCode() int { return int(e) }

// Vulnerabilities fail, a database that does not answer is a warning, and any other end of govulncheck fails.
func TestVulnerabilities(t *testing.T) {
	for name, c := range map[string]struct {
		err              error
		stderr           string
		faults, warnings int
	}{
		"none":         {nil, "", 0, 0},
		"some":         {exit(vulnerable), "", 1, 0},
		"no network":   {exit(1), `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/": no such host`, 0, 1},
		"broken code":  {exit(1), "govulncheck: loading packages: there are errors", 1, 0},
		"not even run": {errors.New("exec: go: not found"), "", 1, 0},
	} {
		var found findings
		judge(&found, c.err, "output", c.stderr)
		if len(found.faults) != c.faults || len(found.warnings) != c.warnings {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// The licences of this repository's modules.
func TestLicencesOfThisRepository(t *testing.T) {
	t.Chdir("../..")
	if found := licences(t.Context()); len(found.faults) > 0 {
		t.Errorf("%q", found.faults)
	}
}
