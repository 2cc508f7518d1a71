package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/ports"
)

// start makes the data directory, starts the server for the first time and makes the database.
func (s *Server) start(ctx context.Context) error {
	if err := s.initialize(ctx); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	if err := execute(ctx, s.urlOf("postgres"), "CREATE DATABASE "+quoted(s.database)); err != nil {
		return err
	}
	s.url = s.urlOf(s.database)
	return nil
}

// listen launches the server for the first time, on a port that is free.
func (s *Server) listen(ctx context.Context) (err error) {
	for attempt := 1; ; attempt++ {
		free, err := ports.Free(1)
		if err != nil {
			return err
		}
		s.port = free[0]
		if err = s.launch(ctx); err == nil || !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return err
		}
	}
}

// template has the data directory of which each server gets a copy: to make one takes a second of processor time. The
// server, which never runs, is kept, since its directory is removed when nobody has it any more.
var template struct {
	sync.Mutex
	*Server
}

// initialize makes the data directory.
func (s *Server) initialize(ctx context.Context) error {
	template.Lock()
	defer template.Unlock()
	if template.Server == nil {
		made := &Server{binaries: s.binaries}
		if err := made.prepare(); err != nil {
			return err
		}
		if err := made.initdb(ctx); err != nil {
			return errors.Join(err, made.Stop())
		}
		template.Server = made
	}
	if err := os.CopyFS(s.data(), os.DirFS(template.data())); err != nil {
		return err
	}
	return s.own()
}

// initdb makes a data directory. It does not sync it: that matters only when the machine crashes.
func (s *Server) initdb(ctx context.Context) error {
	args := []string{
		"--pgdata=" + s.data(), "--username=" + superuser, "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync",
	}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	p, err := s.spawn("initdb", args...)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.kill(p))
	}
	if !p.command.ProcessState.Success() {
		return fmt.Errorf("initdb: %s: %s", p.command.ProcessState, s.log())
	}
	return nil
}

// launch starts the server on its data directory and returns when it answers.
func (s *Server) launch(ctx context.Context) error {
	p, err := s.spawn("postgres", "-D", s.data(), "-p", s.port)
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.answers(ctx)
		if err == nil {
			s.running = p
			return nil
		}
		select {
		case <-p.ended:
			log := s.log()
			if strings.Contains(log, "Address already in use") {
				return fmt.Errorf("%w: %s", errPortTaken, log)
			}
			return fmt.Errorf("postgres: %s: %s", p.command.ProcessState, log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("postgres is not ready: %w: %w", context.Cause(ctx), err), s.kill(p))
		case <-tick.C:
		}
	}
}

// answers reports whether this server, and no other that has taken its port, answers a query.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var data string
	if err := conn.QueryRow(ctx, "SELECT current_setting('data_directory')").Scan(&data); err != nil {
		return err
	}
	if data != s.data() {
		return fmt.Errorf("another server is on port %s", s.port)
	}
	return nil
}
