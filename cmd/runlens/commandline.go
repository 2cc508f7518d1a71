package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/olap/cells"
)

// vet refuses command lines that kong takes, before anything is opened.
func vet(command *kong.Context, stdin io.Reader) error {
	return cmp.Or(refuseEmpty(command.Path), refuseNoAddress(command.Flags()), refuseOverwriting(command, stdin))
}

// forgetEmptyVariables makes a variable of ours that is empty the same as none: files of services and containers pass
// what is not set as an empty text.
func forgetEmptyVariables() {
	for name, value := range ourVariables(os.Environ()) {
		if value == "" {
			os.Unsetenv(name)
		}
	}
}

// ourVariables are the variables of an environment that are for runlens.
func ourVariables(environ []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, variable := range environ {
			name, value, _ := strings.Cut(variable, "=")
			if strings.HasPrefix(name, "RUNLENS_") && !yield(name, value) {
				return
			}
		}
	}
}

// givenFlags are the flags on the command line: what variables and defaults set is not among them.
func givenFlags(path []*kong.Path) (flags []*kong.Flag) {
	for _, element := range path {
		if element.Flag != nil && !element.Resolved {
			flags = append(flags, element.Flag)
		}
	}
	return flags
}

// givenArguments are the arguments on the command line.
func givenArguments(path []*kong.Path) (arguments []*kong.Positional) {
	for _, element := range path {
		if element.Positional != nil {
			arguments = append(arguments, element.Positional)
		}
	}
	return arguments
}

// refuseKeys fails if an API key is among the arguments (contract 4.22), wherever it is: nothing shows them before.
func refuseKeys(args []string) error {
	for _, arg := range args {
		if key, found := auth.FindKey(arg); found {
			return fmt.Errorf("an API key must not be on the command line, where other users can read it: revoke it; its id "+
				"is %s", key.KeyID)
		}
	}
	return nil
}

// refuseNotUTF8 fails if an argument or a variable of ours is not UTF-8. kong passes values on as JSON, in which such
// bytes become other ones, so that another file or folder would be used than the one that was named. What a variable
// has is not shown, since it may be a password.
func refuseNotUTF8(args, environ []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return fmt.Errorf("the argument %q is not UTF-8; rename what it names", arg)
		}
	}
	for name, value := range ourVariables(environ) {
		if !utf8.ValidString(value) {
			return fmt.Errorf("%s is not UTF-8; rename what it names", name)
		}
	}
	return nil
}

// refuseEmpty fails if an argument is empty, or the value of a flag. A variable of a script that is not set must not be
// the same as nothing: `purge --person "$WHO"` would purge the organization. Where a default or an environment variable
// may be empty, the flag may be so too.
func refuseEmpty(path []*kong.Path) error {
	empty := func(values []string) bool {
		return values != nil && (len(values) == 0 || slices.Contains(values, ""))
	}
	for _, argument := range givenArguments(path) {
		if empty(texts(argument.Target)) {
			return fmt.Errorf("<%s>: the value is empty", argument.Name)
		}
	}
	for _, flag := range givenFlags(path) {
		if flag.HasDefault || len(flag.Envs) > 0 {
			continue
		}
		if empty(texts(flag.Target)) {
			return fmt.Errorf("--%s: the value is empty; leave the flag out to do without it", flag.Name)
		}
	}
	return nil
}

// refuseNoAddress fails if an address to listen at can be none. What is on a machine decides later.
func refuseNoAddress(flags []*kong.Flag) error {
	for _, flag := range flags {
		if flag.PlaceHolder != "HOST:PORT" {
			continue
		}
		for _, address := range texts(flag.Target) {
			if address == "" || address == "off" {
				continue
			}
			_, port, err := net.SplitHostPort(address)
			if err == nil {
				_, err = net.LookupPort("tcp", port)
			}
			if err != nil {
				return fmt.Errorf("--%s: %q is no address such as 127.0.0.1:8080", flag.Name, address)
			}
		}
	}
	return nil
}

// outputFlags name files that commands write.
var outputFlags = []string{"rejects", "ready-file", "file", "on-change", "export"}

// refuseOverwriting fails if a command would write a file that it reads, or may read (contract 4.22).
func refuseOverwriting(command *kong.Context, stdin io.Reader) error {
	for _, output := range command.Flags() {
		file := output.Target.String()
		if file == "" || !slices.Contains(outputFlags, output.Name) {
			continue
		}
		name := "--" + output.Name
		if output.Short != 0 {
			name = "-" + string(output.Short)
		}
		if err := refuseInputs(name, file, stdin, filesBeside(command, output)...); err != nil {
			return err
		}
	}
	return nil
}

// filesBeside are the files that the flags, variables and arguments of a command name, but for one flag, and the kept
// ones that commands find by themselves.
func filesBeside(command *kong.Context, but *kong.Flag) (files []string) {
	for _, flag := range command.Flags() {
		switch value := flag.Target.String(); {
		case flag == but:
		case flag.Name == "data-dir":
			files = append(files, filesOfData(value)...)
		case flag.Name == "cells":
			files = append(files, filesOfCells(value)...)
		case flag.PlaceHolder == "FILE":
			files = append(files, texts(flag.Target)...)
		}
	}
	saved := ""
	for _, argument := range givenArguments(command.Path) {
		switch argument.Tag.PlaceHolder {
		case "FILE":
			files = append(files, texts(argument.Target)...)
		case "@NAME":
			saved = strings.TrimPrefix(argument.Target.String(), "@")
		}
	}
	return append(files, profile.HomeOrNowhere().Files(saved)...)
}

// filesOfData are the files of a data directory that commands read: the token, and those of the engine.
func filesOfData(dir string) []string {
	files := []string{filepath.Join(dir, adminTokenFile)}
	entries, _ := os.ReadDir(filepath.Join(dir, "engine")) // one that cannot be read is refused later
	for _, entry := range entries {
		files = append(files, filepath.Join(dir, "engine", entry.Name()))
	}
	return files
}

// filesOfCells are a file of cells, and what it names. What can be read once, such as a pipe, is left to whoever needs
// it.
func filesOfCells(path string) []string {
	files := []string{path}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return files
	}
	list, _ := cells.ReadFile(path) // whoever needs it says what is wrong with it
	for _, cell := range list {
		if files = append(files, cell.PasswordFile); cell.DataDir != "" {
			files = append(files, filesOfData(cell.DataDir)...)
		}
	}
	return files
}

// texts are the values of a flag or argument of text, or of a list of such; nil for any other.
func texts(target reflect.Value) []string {
	switch {
	case target.Kind() == reflect.String:
		return []string{target.String()}
	case target.Kind() == reflect.Slice && target.Type().Elem().Kind() == reflect.String:
		values := make([]string, target.Len())
		for i := range values {
			values[i] = target.Index(i).String()
		}
		return values
	}
	return nil
}
