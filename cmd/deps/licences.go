package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licences checks that every module whose packages are in our commands, tests and tools has a licence of the list
// below.
func licences(ctx context.Context) (found findings) {
	modules, err := modules(ctx)
	if err != nil {
		found.fault("licences: %v", err)
		return found
	}
	for _, m := range modules {
		if _, err := licenceOf(os.DirFS(m.dir)); err != nil {
			found.fault("%s: %v", m.path, err)
		}
	}
	return found
}

type module struct{ path, dir string }

// modules are the modules of all packages that are built, for this platform, our own left out.
func modules(ctx context.Context) (list []module, err error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Dir}}{{end}}{{end}}`
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f", format, "./...", "tool")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if found && !slices.Contains(list, module{path, dir}) {
			list = append(list, module{path, dir})
		}
	}
	if len(list) == 0 {
		return nil, errors.New("go list names no module")
	}
	return list, nil
}

// The licences that a dependency may have, by words that each has and no other one.
var allowed = []struct{ name, words string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
}

// mozilla is allowed too: it binds changes of its own files only. Its text names the licences that are refused.
const mozilla = "mozilla public license version 2.0"

// What a licence of the GNU family has, also if an allowed one is there too.
var refused = []string{
	"gnu general public license", "gnu affero general public license",
	"gnu lesser general public license", "gnu library general public license",
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying)([-._].*)?$`)
	space       = regexp.MustCompile(`(?m)(^>|\s)+`) // quotations have > before each line
)

// licenceOf returns the licence of a module's folder, or why it is none that is allowed. Every licence file in it
// must be one that is known.
func licenceOf(dir fs.FS) (name string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name()) // of code that is about licences, and of the licence of a documentation
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) || extension == ".go" || extension == ".docs" {
			continue
		}
		content, err := fs.ReadFile(dir, entry.Name())
		if err != nil {
			return "", err
		}
		if name, err = licenceIn(string(content)); err != nil {
			return "", fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	if name == "" {
		return "", errors.New("has no licence file")
	}
	return name, nil
}

func licenceIn(text string) (string, error) {
	text = strings.ToLower(space.ReplaceAllString(text, " "))
	if strings.Contains(text, mozilla) {
		return "MPL-2.0", nil
	}
	for _, words := range refused {
		if strings.Contains(text, words) {
			return "", fmt.Errorf("is under the %s", words)
		}
	}
	for _, licence := range allowed {
		if strings.Contains(text, licence.words) {
			return licence.name, nil
		}
	}
	return "", errors.New("is under a licence that is not on the list")
}
