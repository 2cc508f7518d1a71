package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A File takes the place of the one at its path when it is kept; until then that one is whole. The new file is in the
// same folder, and its name ends in ".partial". A path that is no regular file, such as a pipe, is written as it is.
type File struct {
	io.Writer
	file *os.File
	path string // where the file goes; empty when it is there
}

// Create begins the file. Only its owner can read a new one, for its rows can name people; one that replaces another
// has that one's permissions.
func Create(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case err == nil && !info.Mode().IsRegular():
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{Writer: file, file: file}, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return nil, err
	}
	if info != nil {
		if err := file.Chmod(info.Mode().Perm()); err != nil {
			file.Close()
			return nil, errors.Join(err, os.Remove(file.Name()))
		}
	}
	return &File{Writer: file, file: file, path: path}, nil
}

// Keep puts the whole file in its place.
func (f *File) Keep() error {
	if f.path == "" {
		return f.file.Close()
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.file.Name())
	}
	return err
}

// Drop leaves the file at the path as it was.
func (f *File) Drop() {
	f.file.Close()
	if f.path != "" {
		os.Remove(f.file.Name())
	}
}
