package clickhouse_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// expectRefusal opens c, which must fail with a message that says each of the words.
func expectRefusal(t *testing.T, c clickhouse.Config, words ...string) error {
	t.Helper()
	s, err := clickhouse.Open(context.Background(), c)
	if err == nil {
		s.Close()
		t.Fatal("opened")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the message %q does not say %q", err, word)
		}
	}
	return err
}

func TestMissingLibrarySaysWhatToDo(t *testing.T) {
	c := config(dataDir(t))
	c.EngineLib = filepath.Join(t.TempDir(), "libchdb.so")
	if err := expectRefusal(t, c, "RUNLENS_ENGINE_LIB", "runlens engine fetch"); !errors.Is(err, clickhouse.ErrNoLibrary) {
		t.Errorf("%v is not ErrNoLibrary", err)
	}
	t.Chdir(t.TempDir())
	c.EngineLib = ""
	err := expectRefusal(t, c, "RUNLENS_ENGINE_LIB", "runlens engine fetch", "RUNLENS_CLICKHOUSE_URL")
	if !errors.Is(err, clickhouse.ErrNoLibrary) {
		t.Errorf("%v is not ErrNoLibrary", err)
	}
}

func TestLibraryIsFoundBelowTheWorkingDirectory(t *testing.T) {
	root := t.TempDir()
	t.Cleanup(func() { expectEngineEnded(t, filepath.Join(root, "data")) })
	path := clickhouse.LibraryBelow(root)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(clickhousetest.Library(), path); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	c := config("") // and the data go to ./data
	c.EngineLib = ""
	open(t, c)
	if _, err := os.Stat(filepath.Join(root, "data", "engine", "password")); err != nil {
		t.Error(err)
	}
}

func TestUnusableLibrarySaysWhatToDo(t *testing.T) {
	c := config(dataDir(t))
	c.EngineLib = filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(c.EngineLib, []byte("not a library"), 0o700); err != nil {
		t.Fatal(err)
	}
	expectRefusal(t, c, c.EngineLib, "runlens engine fetch")
}

func TestUnwritableDataDirectorySaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expectRefusal(t, config(file), file, "RUNLENS_DATA_DIR")
}

// rewriteVersion changes the version file of a used data directory.
func rewriteVersion(t *testing.T, dir string, change func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "engine", "VERSION")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]any{}
	if err := json.Unmarshal(content, &record); err != nil {
		t.Fatal(err)
	}
	change(record)
	if content, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDataOfAnotherVersion(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(map[string]any)
		refused bool
	}{
		{"newer engine", func(r map[string]any) { r["engine"], r["library"] = "99.1.2.3", "elsewhere" }, true},
		{"newer layout", func(r map[string]any) { r["layout"] = 99 }, true},
		{"older engine", func(r map[string]any) { r["engine"], r["library"] = "24.8.1.1", "elsewhere" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := dataDir(t)
			s := open(t, config(dir))
			pid := enginePID(t, dir)
			s.Close()
			expectGone(t, pid)
			rewriteVersion(t, dir, test.change)
			if !test.refused {
				open(t, config(dir))
				return
			}
			err := expectRefusal(t, config(dir), "RUNLENS_DATA_DIR", "99", "newer")
			if !errors.Is(err, clickhouse.ErrOtherVersion) {
				t.Errorf("%v is not ErrOtherVersion", err)
			}
		})
	}
}

// A start that fails again and again is tried at growing intervals, and works once the cause is gone.
func TestFailingRestartIsRetried(t *testing.T) {
	dir := dataDir(t)
	library := filepath.Join(t.TempDir(), "libchdb.so")
	link := func() {
		t.Helper()
		if err := os.Symlink(clickhousetest.Library(), library); err != nil {
			t.Fatal(err)
		}
	}
	link()
	var log logtest.Buffer
	c := config(dir)
	c.EngineLib, c.Logger = library, slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, c)

	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(enginePID(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pause := range []string{"next_try_in=200ms", "next_try_in=400ms", "next_try_in=800ms"} {
		eventually(t, pause, func() bool { return strings.Contains(log.String(), pause) })
	}
	if works(s) {
		t.Error("a query succeeds without an engine")
	}
	link()
	eventually(t, "the engine answers again", func() bool { return works(s) })
}
