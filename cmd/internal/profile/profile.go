// Package profile keeps what a person uses again and again in files of their own: servers with their keys, and saved
// questions.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Default is the profile that is used where none is named.
const Default = "default"

// A Profile is a server and a key for it.
type Profile struct {
	URL string `yaml:"url"`
	Key string `yaml:"key"`
}

// A Folder is where the files are. Nowhere has none.
type Folder string

// Nowhere is the folder of who has no home, such as a service: nothing is saved there, and nothing can be.
const Nowhere Folder = ""

// Home is the folder of the person who runs the program.
func Home() (Folder, error) {
	base, err := os.UserConfigDir()
	if err != nil {
		return Nowhere, fmt.Errorf("there is no place for saved questions and profiles: %w", err)
	}
	return Folder(filepath.Join(base, "runlens")), nil
}

// HomeOrNowhere is Home, for what only reads there what was not named otherwise.
func HomeOrNowhere() Folder {
	home, _ := Home() // is Nowhere with an error
	return home
}

// Make makes the folder if it is not there, and fails where no file can be made in it.
func (f Folder) Make() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(string(f), "*.partial")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// CheckName returns an error for what cannot name a profile or a saved question.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%q is no name: use letters, digits, '.', '_' and '-', at most 64", name)
	}
	return nil
}

func (f Folder) profiles() string { return filepath.Join(string(f), "profiles.yaml") }

// Profile reads one; ok is false if it is not there. A file that others can read is refused, for it holds keys.
func (f Folder) Profile(name string) (p Profile, ok bool, err error) {
	all, err := f.all()
	p, ok = all[name]
	return p, ok, err
}

// Profiles are the names of all, in their order.
func (f Folder) Profiles() ([]string, error) {
	all, err := f.all()
	return slices.Sorted(maps.Keys(all)), err
}

func (f Folder) all() (map[string]Profile, error) {
	all := make(map[string]Profile)
	file, err := os.Open(f.profiles())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s holds keys and can be used by others: chmod 600 %s", f.profiles(), f.profiles())
	}
	if err := Decode(file, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", f.profiles(), err)
	}
	if all == nil { // the file has a null alone
		all = make(map[string]Profile)
	}
	return all, nil
}

// Keep stores a profile under a name, in the place of another of that name, and returns the file.
func (f Folder) Keep(name string, p Profile) (string, error) {
	all, err := f.all()
	if err != nil {
		return "", err
	}
	all[name] = p
	return f.profiles(), f.write(f.profiles(), all)
}

// Forget takes a profile away; ok is false if it was not there.
func (f Folder) Forget(name string) (ok bool, err error) {
	all, err := f.all()
	if err != nil {
		return false, err
	}
	if _, ok = all[name]; !ok {
		return false, nil
	}
	delete(all, name)
	return true, f.write(f.profiles(), all)
}

// Decode reads YAML without unknown fields. Fault says what an error is about.
func Decode(r io.Reader, into any) error {
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	err := d.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	line, text := Fault(err)
	if line == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("line %d: %s", line, text)
}

// write replaces a file as a whole. One that was not there can be read by its owner only.
func (f Folder) write(path string, content any) error {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(content); err != nil {
		return err
	}
	return Replace(path, text.Bytes())
}

// Replace puts a file in its place when all of it is written. It keeps the mode of the one before and a symbolic link
// to it; without one only its owner can read it. Folders that are missing are made.
func Replace(path string, content []byte) error {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if before, missing := os.Stat(path); missing == nil {
		err = errors.Join(err, file.Chmod(before.Mode().Perm()))
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
