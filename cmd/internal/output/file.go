package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// A File takes the place of the one at its path when it is filled; until then that one is whole. The new file is in the
// same folder, and its name ends in ".partial". A path that is no regular file, such as a pipe, is written as it is.
type File struct {
	out  io.Writer
	file *os.File
	path string // where the file goes; empty when it is there
}

// Create begins the file. Only its owner can read a new one, for its rows can name people; one that replaces another
// of the same owner has that one's permissions.
func Create(path string) (*File, error) {
	path, old, err := Place(path)
	if err != nil {
		return nil, err
	}
	if old != nil && !old.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{out: Guarded(file), file: file}, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return nil, named(err, path)
	}
	if old != nil && owner(old) == os.Geteuid() {
		if err := readableAs(file, old); err != nil {
			file.Close()
			return nil, errors.Join(err, os.Remove(file.Name()))
		}
	}
	return &File{out: file, file: file, path: path}, nil
}

// named says of an error at which path it is, instead of the file that was to take its place: of that one nobody knows.
func named(err error, path string) error {
	if at, ok := errors.AsType[*os.PathError](err); ok && path != "" {
		return fmt.Errorf("%s: %w", path, at.Err)
	}
	return err
}

// Write is that of io.Writer.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	return n, named(err, f.path)
}

// Place is where a file of this path goes, behind symbolic links, and what is there; nil for nothing. In a folder like
// /tmp, where everybody may put files but only replace their own, another user's file, link or pipe is refused: it
// cannot be replaced, or whoever put it there would choose what is overwritten and who reads it.
func Place(path string) (target string, old os.FileInfo, err error) {
	link, err := os.Lstat(path)
	if err != nil {
		return path, nil, nil // whoever creates it finds what is wrong
	}
	if err := refuseForeign(path, link); err != nil {
		return "", nil, err
	}
	target, err = filepath.EvalSymlinks(path)
	if err != nil { // a link to nothing is replaced; others, as to /dev/stdout, have no name behind them
		target = path
	}
	old, err = os.Stat(target)
	switch {
	case err != nil:
		return target, nil, nil
	case old.IsDir():
		return "", nil, fmt.Errorf("%s is a folder", path)
	}
	return target, old, refuseForeign(target, old)
}

// refuseForeign refuses what another user has put into a sticky folder. The folder's own user may put things there.
func refuseForeign(path string, info os.FileInfo) error {
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || folder.Mode()&os.ModeSticky == 0 {
		return err
	}
	of, mine := owner(info), os.Geteuid()
	replaced := info.Mode().IsRegular() && (mine == 0 || mine == owner(folder)) // these may replace everybody's
	if of == mine || replaced || of == owner(folder) && !info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s belongs to another user, and only they may replace it in %s: name another file", path,
		filepath.Dir(path))
}

// owner is the user whose file it is, as a number.
func owner(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// readableAs gives the file the permissions of an older one. Those of its group are left out where the group cannot be
// the same.
func readableAs(file *os.File, old os.FileInfo) error {
	mode := old.Mode().Perm()
	if file.Chown(-1, int(old.Sys().(*syscall.Stat_t).Gid)) != nil {
		mode &^= 0o070
	}
	return file.Chmod(mode)
}

// Fill writes the file and puts it in its place. If it cannot be written, the file at the path stays as it was.
func (f *File) Fill(write func(io.Writer) error) error {
	if err := write(f); err != nil {
		f.drop()
		return err
	}
	return f.keep()
}

func (f *File) keep() error {
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
	return named(err, f.path)
}

func (f *File) drop() {
	f.file.Close()
	if f.path != "" {
		os.Remove(f.file.Name())
	}
}
