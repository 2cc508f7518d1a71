package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Kill ends the server and all its processes at once, as a crash does. Restart starts it again. On the
// server of RUNLENS_TEST_POSTGRES_URL, which is not ours to kill, it skips the test; call it from
// the test's goroutine.
func (s *Server) Kill() error {
	s.skipUnlessOwn()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crash()
}

func (s *Server) crash() error {
	if s.running == nil {
		return nil
	}
	p := s.running
	s.running = nil
	return s.kill(p)
}

// Restart starts the server again on its data and its port, after Kill with crash recovery, and returns
// when it answers. A server that runs is shut down first: its clients read 57P01, admin_shutdown. While
// somebody else has the port, Restart waits, until ctx ends. Like Kill it skips the test on a
// server that is not ours.
func (s *Server) Restart(ctx context.Context) error {
	s.skipUnlessOwn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return errors.New("the server was stopped")
	}
	if err := s.shutdown(syscall.SIGINT); err != nil {
		return err
	}
	for {
		err := s.launch(ctx)
		// The port must stay the same. Whoever took it meanwhile, perhaps as the local port of a connection,
		// is waited for.
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return err
		}
	}
}

// Stop ends the server for good and removes its data. It may be called again.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != "" {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return execute(ctx, s.admin, "DROP DATABASE IF EXISTS "+quoted(s.database)+" WITH (FORCE)")
	}
	if s.guard == nil {
		return nil
	}
	err := s.shutdown(syscall.SIGQUIT) // without a last checkpoint: the data goes
	removeSharedMemory(s.data())
	err = errors.Join(err, s.guard.end())
	s.guard = nil
	return err
}

// shutdown lets a running server end, and kills it when it does not.
func (s *Server) shutdown(how syscall.Signal) error {
	if s.running == nil {
		return nil
	}
	s.running.command.Process.Signal(how) // an error says that it has ended already
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-s.running.ended:
		s.running = nil
		return nil
	case <-timeout.C:
		return errors.Join(fmt.Errorf("the server did not end on %s", how), s.crash())
	}
}

func (s *Server) skipUnlessOwn() {
	if s.admin != "" && s.tb != nil {
		s.tb.Helper()
		s.tb.Skipf("only a server of the test's own can be crashed: unset %s", urlVariable)
	}
}
