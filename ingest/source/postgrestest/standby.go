package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Standby starts a hot standby of the server, which it shuts down for a moment to copy its data. The standby ends
// with Stop or with this process. On a server that is not ours it skips the test, like Kill.
func (s *Server) Standby(ctx context.Context) (_ *Server, err error) {
	s.skipUnlessOwn()
	s.mu.Lock()
	defer s.mu.Unlock()
	standby := &Server{tb: s.tb, database: s.database, binaries: s.binaries}
	if err := standby.prepare(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, standby.Stop())
		}
	}()
	if err := s.shutdown(syscall.SIGINT); err != nil {
		return nil, err
	}
	if err := s.copyData(standby); err != nil {
		return nil, err
	}
	if err := s.launch(ctx); err != nil {
		return nil, err
	}
	standby.mu.Lock()
	err = standby.listen(ctx)
	standby.mu.Unlock() // Stop, which an error calls, takes it too
	standby.url = standby.urlOf(standby.database)
	return standby, err
}

// copyData gives a standby the data of a server that is shut down.
func (s *Server) copyData(standby *Server) error {
	data := standby.data()
	if err := os.CopyFS(data, os.DirFS(s.data())); err != nil {
		return err
	}
	conninfo := fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%s user=%s'\n", s.port, superuser)
	if err := os.WriteFile(filepath.Join(data, "postgresql.auto.conf"), []byte(conninfo), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o600); err != nil {
		return err
	}
	return standby.own()
}

// own makes the data directory one that the server takes: it refuses those that others own or can read.
func (s *Server) own() error {
	if err := os.Chmod(s.data(), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(s.data(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return s.binaries.give(path)
	})
}
