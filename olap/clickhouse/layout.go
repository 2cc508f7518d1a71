package clickhouse

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A layout names the files of one embedded engine, all in <data>/engine.
type layout struct{ dir string }

func layoutOf(dataDir string) layout { return layout{filepath.Join(dataDir, "engine")} }

// usersLock is shared by every user, and exclusive for the ending engine.
func (l layout) usersLock() string { return filepath.Join(l.dir, "users.lock") }

// engineLock is exclusive from before the engine's start to its end.
func (l layout) engineLock() string { return filepath.Join(l.dir, "engine.lock") }
func (l layout) address() string    { return filepath.Join(l.dir, "address.json") }
func (l layout) password() string   { return filepath.Join(l.dir, "password") }
func (l layout) version() string    { return filepath.Join(l.dir, "VERSION") }
func (l layout) log() string        { return filepath.Join(l.dir, "engine.log") }
func (l layout) output() string     { return filepath.Join(l.dir, "engine.out") }
func (l layout) config() string     { return filepath.Join(l.dir, "config.xml") }
func (l layout) users() string      { return filepath.Join(l.dir, "users.xml") }
func (l layout) store() string      { return filepath.Join(l.dir, "store") }
func (l layout) backups() string    { return filepath.Join(l.dir, "backups") }
func (l layout) reserve() string    { return filepath.Join(l.dir, "reserve") }

// backupsLock is shared by those who make or restore a backup.
func (l layout) backupsLock() string { return filepath.Join(l.dir, "backups.lock") }

// history is what was typed into the session. The session makes the file its user's alone whenever it writes to it: it
// must not be /dev/null, which nobody else could use any more on a machine where root runs an engine.
func (l layout) history() string { return filepath.Join(l.dir, "history") }

// create makes the engine's folder, which no other user of the machine may enter.
func (l layout) create() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return l.own()
}

// own closes the folder to other users. It refuses one that belongs to another user, even where this process is root
// and could take it: its owner could read everything in it.
func (l layout) own() error {
	info, err := os.Stat(l.dir)
	if err != nil {
		return err
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to %d: %w", l.dir, owner, os.Geteuid(), fs.ErrPermission)
	}
	return os.Chmod(l.dir, 0o700)
}

// An address is what an engine that is ready publishes about itself.
type address struct {
	Addr    string `json:"addr"` // host:port of the HTTP interface
	PID     int    `json:"pid"`
	Version string `json:"version"`
	challenge
}

// readAddress returns the last published address, whether its engine still lives or not.
func (l layout) readAddress() (address, error) {
	var a address
	content, err := os.ReadFile(l.address())
	if err == nil {
		err = json.Unmarshal(content, &a)
	}
	if err == nil && a.Proof == "" {
		err = errors.New("the engine was started by an older runlens; end the processes that use it")
	}
	return a, err
}

func (l layout) writeAddress(a address) error {
	content, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return writeFileAtomic(l.address(), content)
}

// readPassword returns the password of the data user, making it once for the life of the data
// directory: connection pools outlive an engine, so a new engine must take the old password.
// Only a holder of the engine lock may call it while the file is absent.
func (l layout) readPassword() (string, error) {
	content, err := os.ReadFile(l.password())
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(content), err
	}
	password := randomHex(32)
	return password, writeFileAtomic(l.password(), []byte(password))
}

// writeFileAtomic replaces the file at path, readable by its owner only; a reader sees the old or
// the new content, also after a loss of power.
func writeFileAtomic(path string, content []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(path), err)
	}
	return syncPath(filepath.Dir(path))
}

// syncPath has a file or a folder on the disk when it returns.
func syncPath(path string) error {
	opened, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// randomHex returns n random bytes as 2n hexadecimal digits.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
