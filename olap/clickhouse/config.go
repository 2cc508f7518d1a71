package clickhouse

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
	"unicode/utf8"
)

const (
	// DefaultDatabase is the database of the embedded engine, and of a server URL without a path.
	DefaultDatabase = "runlens"
	// DefaultDataDir is where the embedded engine keeps its data when Config.DataDir is empty (contract 2).
	DefaultDataDir = "data"

	// startTimeout bounds one start of the engine, and the wait for an engine that is just ending.
	startTimeout = 30 * time.Second
)

// Config says which ClickHouse to use and how. The zero value is the embedded engine with its
// data in ./data. The environment variables named here are read by the commands, not by this package.
type Config struct {
	// URL is RUNLENS_CLICKHOUSE_URL: clickhouse://user:password@host:9000/database, or http(s)://….
	// Empty means the embedded engine.
	URL string
	// Database overrides the database of URL. It is created when it does not exist.
	Database string
	// Tables are those of which no row policy may hide rows (ErrRowPolicy).
	Tables []string
	// EngineLib is RUNLENS_ENGINE_LIB, the file of the engine library. Empty means the one that
	// `make engine` or `runlens engine fetch` fetched.
	EngineLib string
	// DataDir is RUNLENS_DATA_DIR, where the embedded engine keeps its data.
	DataDir string
	// EngineMemoryBytes is RUNLENS_ENGINE_MEMORY, the most memory the embedded engine may use
	// (inclusive); a query that would exceed it fails alone. 0 means half of the machine's or the container's memory.
	// Less than MinEngineMemoryBytes is too little.
	EngineMemoryBytes uint64
	// Listen is the IPv4 host:port on which an embedded engine started by this process listens for HTTP. Empty means the
	// loopback interface and a port that the system picks. Anyone with the password gets in, on every interface, and the
	// bytes travel in the clear: others than loopback are meant for containers.
	Listen string
	// Queries is how many API queries this process runs at once; the pool of connections is made for them.
	// 0 is for processes that answer none.
	Queries int
	// Ephemeral removes DataDir when the embedded engine ends, however its users ended. For tests.
	Ephemeral bool
	// Logger receives what the embedded engine's supervision has to say. nil means slog.Default().
	Logger *slog.Logger
}

// withDefaults returns c with every empty field that has a default filled, and DataDir absolute.
func (c Config) withDefaults() (Config, error) {
	if c.DataDir == "" {
		c.DataDir = DefaultDataDir
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var err error
	c.DataDir, err = filepath.Abs(c.DataDir)
	// The engine's process would be given another name: its task is JSON.
	if err == nil && c.URL == "" && !utf8.ValidString(c.DataDir) {
		err = fmt.Errorf("the name of the data directory %q is not UTF-8; set RUNLENS_DATA_DIR to another one", c.DataDir)
	}
	return c, err
}
