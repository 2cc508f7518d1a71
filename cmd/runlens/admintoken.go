package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/runlens/runlens/cmd/internal/profile"
)

// adminTokenFile is in the data directory: the token of the admin addresses of all servers and workers that use it and
// have been given none. Only their user may read it.
const adminTokenFile = "admin.token"

// makeAdminToken returns the token that the data directory keeps, and makes both where they are absent. Of several
// processes that do so at once all return the same token.
func makeAdminToken(dataDir string) (string, error) {
	path := filepath.Join(dataDir, adminTokenFile)
	token, err := readAdminToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := profile.CreateOnce(path, []byte(rand.Text()+"\n")); err != nil {
		return "", err
	}
	return readAdminToken(path)
}

// readAdminToken refuses a file that other users can read, or have put there.
func readAdminToken(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || owner != os.Geteuid() {
		return "", fmt.Errorf("%s is not this user's alone; remove it, and the next start makes another one", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minSecret {
		return "", fmt.Errorf("%s has no token of at least %d bytes; remove it, and the next start makes another one",
			path, minSecret)
	}
	return token, nil
}

// adminToken is what a client sends to an admin address: the token that it was given or, to this machine only, the one
// of the data directory, if it may read that. It is empty where there is none.
func (f tokenFlags) adminToken(address, dataDir string) (string, error) {
	token, err := f.token()
	if err != nil || token != "" {
		return token, err
	}
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		token, err = readAdminToken(filepath.Join(dataDir, adminTokenFile))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}
	return token, err
}
