// Package postgrestest gives tests and benchmarks a real PostgreSQL server, which they may also crash.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
)

const (
	urlVariable = "RUNLENS_TEST_POSTGRES_URL"
	superuser   = "runlens"

	startTimeout = time.Minute      // initdb syncs nothing, but the machine may be busy
	stopTimeout  = 20 * time.Second // the server kills what does not end after 5 s
	portAttempts = 5
)

// errPortTaken says that somebody else took the port between our choice and the server's listening.
var errPortTaken = errors.New("the port is taken")

// settings keep the server small and durable: fsync and synchronous_commit stay on, as by default,
// because a test that crashes the server checks what was committed. Memory is mapped from files
// in the data directory, so that a crash leaves nothing outside it. Statements that write temporary files are logged.
var settings = []string{
	"listen_addresses=127.0.0.1",
	"unix_socket_directories=",
	"max_connections=50",
	"max_prepared_transactions=10",
	"shared_buffers=32MB",
	"dynamic_shared_memory_type=mmap",
	"timezone=UTC",
	"log_timezone=UTC",
	"log_temp_files=0",
}

// A Server is a PostgreSQL server with an empty database. Its methods may be called from several goroutines.
type Server struct {
	tb       testing.TB // nil when started by Start
	url      string
	database string

	// admin is the database that makes and drops the test's on the server of RUNLENS_TEST_POSTGRES_URL. It is
	// empty for a server of our own, which the fields below describe.
	admin string

	binaries *binaries
	dir      string // has all that the server writes
	port     string
	guard    *guard

	mu      sync.Mutex // held while the server starts or ends
	running *process   // nil when it does not run
}

// New returns a server for one test, or fails the test. It is one that Start started; or, when
// RUNLENS_TEST_POSTGRES_URL names a server, a new database of a random name on that. Both are
// gone after the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var s *Server
	var err error
	if named := os.Getenv(urlVariable); named != "" {
		s, err = attach(ctx, named)
	} else {
		s, err = Start(ctx)
	}
	if err != nil {
		tb.Fatalf("a PostgreSQL for tests: %v", err)
	}
	s.tb = tb
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stop the test's PostgreSQL: %v", err)
		}
	})
	return s
}

// forgetVariables forgets the variables of libpq, which name servers of whoever runs the tests. Its clients heed them
// beside an address.
func forgetVariables() {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			os.Unsetenv(name)
		}
	}
}

// Start starts a server with the binaries that `make postgres` fetched into the repository of the
// working directory. It keeps its data in a new temporary directory and listens on a port of 127.0.0.1 that
// the system chose. The server ends, and its directory goes, with Stop or with this process,
// however that ends.
func Start(ctx context.Context) (_ *Server, err error) {
	forgetVariables()
	s := &Server{database: "test_" + randomName()}
	if s.binaries, err = findBinaries(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	s.mu.Lock()
	err = s.start(ctx)
	s.mu.Unlock() // Stop, which an error calls, takes it too
	if err != nil {
		return nil, err
	}
	return s, nil
}

// prepare makes the directory of a server, and what removes it.
func (s *Server) prepare() (err error) {
	if s.dir, err = memory.NewDir("runlens-postgres-"); err != nil {
		return err
	}
	if s.guard, err = newGuard(s.dir); err != nil {
		os.RemoveAll(s.dir)
		return err
	}
	// A process's working directory, by which a crash finds the server's processes, has no links in it.
	if s.dir, err = filepath.EvalSymlinks(s.dir); err == nil {
		err = s.binaries.give(s.dir)
	}
	if err != nil {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// URL returns the address of the test's own, empty database. It stays the same over Kill and Restart.
func (s *Server) URL() string { return s.url }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) urlOf(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%s/%s?sslmode=disable", superuser, s.port, database)
}
