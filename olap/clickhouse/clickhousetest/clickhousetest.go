// Package clickhousetest gives every test a database of its own on a real ClickHouse.
package clickhousetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
)

const (
	urlVariable       = "RUNLENS_TEST_CLICKHOUSE_URL"
	containerVariable = "RUNLENS_TEST_CONTAINER"
	imageVariable     = "RUNLENS_TEST_IMAGE"
	libraryVariable   = "RUNLENS_ENGINE_LIB"

	// defaultImage is the official server; tests of another image set RUNLENS_TEST_IMAGE.
	defaultImage = "clickhouse/clickhouse-server:26.3"

	openTimeout = 3 * time.Minute // a container's image may have to be pulled first
)

// Open returns a server with an empty database of a random name, which is dropped and closed when t
// ends. The server is, in this order, the one of RUNLENS_TEST_CLICKHOUSE_URL; a container of
// RUNLENS_TEST_IMAGE when RUNLENS_TEST_CONTAINER is 1; an embedded engine in a temporary directory.
// A test has the server for itself, with its subtests, until it ends; tests that run side by side have an engine each,
// and wait for each other where there is one server. Engines and container end with the process of the tests.
// The test fails, and is not skipped, when there is no server to be had.
func Open(t testing.TB) *clickhouse.Server {
	t.Helper()
	config, giveBack, err := servers.lend(t.Name())
	if err != nil {
		t.Fatalf("a ClickHouse for tests: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	config.Database = "test_" + randomName()
	server, err := clickhouse.Open(ctx, config)
	if err != nil {
		giveBack()
		t.Fatalf("a ClickHouse for tests: %v", err)
	}
	t.Cleanup(func() {
		defer giveBack()
		if err := server.Conn().Exec(context.Background(), "DROP DATABASE IF EXISTS `"+config.Database+"` SYNC"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		server.Close()
	})
	return server
}

// startEngine starts an embedded engine in a new directory. This process stays its user until
// it ends, however it ends; the engine then ends too and removes the directory.
func startEngine(ctx context.Context, config *clickhouse.Config) error {
	config.EngineLib = Library()
	dir, err := memory.NewDir("runlens-engine-")
	if err != nil {
		return err
	}
	config.DataDir, config.Ephemeral = dir, true
	if _, err := clickhouse.Open(ctx, *config); err != nil {
		os.RemoveAll(dir)
		return err
	}
	return nil
}

// Library returns the engine library's file for tests: RUNLENS_ENGINE_LIB, or the one of the
// repository that has the working directory, where `go test` puts a test.
func Library() string {
	if named := os.Getenv(libraryVariable); named != "" {
		return named
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		if path := clickhouse.LibraryBelow(dir); path != "" {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
		return ""
	}
	return ""
}

func randomName() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}
