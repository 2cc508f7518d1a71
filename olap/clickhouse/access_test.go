package clickhouse_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// ask sends one statement as the user over HTTP and returns the status and the answer.
func ask(t *testing.T, addr, user, password, statement string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, "http://"+addr+"/", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // an open connection delays the end of the engine by five seconds
	request.SetBasicAuth(user, password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestDataNeedsThePasswordOfTheFile(t *testing.T) {
	dir := dataDir(t)
	open(t, config(dir))
	addr := published(t, dir).Addr
	path := filepath.Join(dir, "engine", "password")
	password, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := ask(t, addr, "runlens", string(password), "SELECT 1"); status != http.StatusOK {
		t.Errorf("with the password: %d %s", status, answer)
	}
	for _, wrong := range []string{"", "runlens", string(password[1:])} {
		if status, _ := ask(t, addr, "runlens", wrong, "SELECT 1"); status == http.StatusOK {
			t.Errorf("password %q is accepted", wrong)
		}
	}
}

// Only the owner of the data directory can read the password, or anything else in it.
func TestEngineFilesAreTheOwnersAlone(t *testing.T) {
	dir := dataDir(t)
	open(t, config(dir))
	for name, want := range map[string]os.FileMode{
		"engine": 0o700, "engine/password": 0o600, "engine/address.json": 0o600, "engine/users.xml": 0o600,
		"engine/engine.out": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	// What the engine itself makes, too.
	err := filepath.WalkDir(filepath.Join(dir, "engine"), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o, which is open to others", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(filepath.Join(dir, "engine", "password"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.xml", "users.xml", "address.json", "engine.out", "engine.log"} {
		content, err := os.ReadFile(filepath.Join(dir, "engine", name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if strings.Contains(string(content), string(password)) {
			t.Errorf("%s contains the password", name)
		}
	}
}

// Running the engine as root is logged once per process, however often the engine is started again.
func TestRunningAsRootWarnsOnce(t *testing.T) {
	var log logtest.Buffer
	c := config(dataDir(t))
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, c)
	pid := enginePID(t, c.DataDir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine is started again", func() bool {
		return strings.Count(log.String(), "embedded engine started") == 2
	})
	if !works(s) {
		t.Error("the engine does not answer")
	}
	want := 0
	if os.Geteuid() == 0 {
		want = 1
	}
	if got := strings.Count(log.String(), "runs as root"); got != want {
		t.Errorf("%d warnings, want %d:\n%s", got, want, log.String())
	}
}
