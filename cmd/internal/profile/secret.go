package profile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// secretBytes is how long a secret is.
const secretBytes = 32

// LinkSecret is what signs links to dashboards. The first call makes it, in a file of its own; later ones return the
// same. Without the file the links that were made hold no longer. A file that others can read is refused.
func (f Folder) LinkSecret() ([]byte, error) {
	path := filepath.Join(string(f), "links.secret")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, secretBytes)
		rand.Read(secret)
		if err := CreateOnce(path, secret); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s signs links and can be used by others: chmod 600 %s", path, path)
	}
	secret, err := os.ReadFile(path)
	if err == nil && len(secret) != secretBytes {
		err = fmt.Errorf("%s is not a secret of runlens: remove it, which ends all links", path)
	}
	return secret, err
}

// CreateOnce makes a file, which only its owner can read, unless there is one. It is there whole or not at all, and of
// several who make it at the same time all find the same. Folders that are missing are made.
func CreateOnce(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
