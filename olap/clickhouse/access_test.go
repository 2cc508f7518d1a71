package clickhouse_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
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

// Every local user can log in as "default", which the start-up session needs without a password.
func TestDefaultUserIsPowerless(t *testing.T) {
	ctx := context.Background()
	dir := dataDir(t)
	s := open(t, config(dir))
	for _, statement := range []string{"CREATE TABLE secrets (s String) ENGINE = MergeTree ORDER BY s", "INSERT INTO secrets VALUES ('tell nobody')"} {
		if err := s.Conn().Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	addr := published(t, dir).Addr
	for _, statement := range []string{
		"SELECT * FROM runlens.secrets",
		"SELECT name FROM system.tables",
		"SELECT * FROM system.processes",
		"SELECT * FROM file('/etc/passwd', LineAsString)",
		"SELECT * FROM file('/dev/stdin', LineAsString)",
		"SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
		"INSERT INTO runlens.secrets VALUES ('x')",
		"INSERT INTO FUNCTION file('/tmp/runlens-default-user', LineAsString) SELECT 'x'",
		"CREATE TABLE runlens.t (n UInt8) ENGINE = Memory",
		"CREATE DATABASE d",
		"DROP DATABASE runlens",
		"KILL QUERY WHERE 1",
		"SYSTEM STOP LISTEN HTTP",
		"SYSTEM START LISTEN TCP",
		"SELECT count() FROM numbers(10)",
	} {
		if status, answer := ask(t, addr, "default", "", statement); status == http.StatusOK && strings.TrimSpace(answer) != "" {
			t.Errorf("default may %s: %s", statement, answer)
		} else if status == http.StatusOK {
			t.Errorf("default may %s", statement)
		}
	}
	if !works(s) {
		t.Error("the engine does not answer any more")
	}
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
		"engine": 0o700, "engine/password": 0o600, "engine/address.json": 0o600, "engine/users.xml": 0o600, "engine/engine.out": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
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

// Not even the user of the data can reach out of the engine.
func TestStatementsCannotReachTheHost(t *testing.T) {
	const accessDenied = 497
	s := open(t, config(dataDir(t)))
	for _, statement := range []string{
		"SELECT * FROM file('/etc/passwd', LineAsString)",
		"INSERT INTO FUNCTION file('/tmp/runlens-data-user', LineAsString) SELECT 'x'",
		"SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
		"SELECT * FROM remote('127.0.0.1:1', system.one)",
	} {
		err := s.Conn().Exec(context.Background(), statement)
		var exception *driver.Exception
		if !errors.As(err, &exception) || exception.Code != accessDenied {
			t.Errorf("%s: %v, want access denied", statement, err)
		}
	}
}
