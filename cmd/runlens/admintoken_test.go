package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/http/admin"
)

// Who may reach the admin address and has no token learns of nobody's questions and reads no profile. The token is in
// the data directory, for the user of the server alone, and in no log.
func TestAdminTokenOfTheDataDirectory(t *testing.T) {
	flags := append(store(t), "--maintenance-share", "0")
	_, address, _ := started(t, flags...)
	info, err := os.Stat(filepath.Join(flags[1], adminTokenFile))
	if err != nil || info.Mode() != 0o600 {
		t.Fatal(info, err)
	}
	token := adminToken(t, flags)
	for path, without := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200,
		"/usage": 401, "/debug/pprof/": 401, "/debug/pprof/heap": 401} {
		for given, want := range map[string]int{"": without, token[1:]: without, token: 200} {
			if code, _ := get(t, address+path, given); code != want {
				t.Errorf("%s with %q: %d, want %d", path, given, code, want)
			}
		}
	}
	request, err := http.NewRequest(http.MethodGet, address+"/metrics", nil)
	must(t, err)
	request.Host = "a.example"
	if code, text := send(t, request); code != http.StatusMisdirectedRequest {
		t.Errorf("metrics for a page of another site: %d %s", code, text)
	}
	// A second server of the directory, and clients on this machine, have the same token.
	_, other, _ := started(t, flags...)
	if code, _ := get(t, other+"/usage", token); code != 200 {
		t.Errorf("the other server: %d", code)
	}
	host := strings.TrimPrefix(address, "http://")
	_, port, _ := net.SplitHostPort(host)
	for from, want := range map[string]string{host: token, "localhost:" + port: token, "[::1]:" + port: token,
		"10.0.0.7:9090": "", "a.example:9090": ""} {
		if got, err := (tokenFlags{}).adminToken(from, flags[1]); got != want || err != nil {
			t.Errorf("the token for %s is %q, want %q (%v)", from, got, want, err)
		}
	}
	if got, err := (tokenFlags{}).adminToken(host, t.TempDir()); got != "" || err != nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
	t.Setenv("RUNLENS_ADMIN_TOKEN", "another one, of 16 bytes")
	if got, err := (tokenFlags{}).adminToken("a.example:9090", flags[1]); got != "another one, of 16 bytes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Whoever comes first makes the token, whole, and leaves nothing else behind.
func TestMakeAdminToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there yet")
	tokens := make([]string, 32)
	var group sync.WaitGroup
	for i := range tokens {
		group.Go(func() {
			var err error
			if tokens[i], err = makeAdminToken(dir); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, token := range tokens {
		if token != tokens[0] || len(token) < 26 {
			t.Errorf("%q and %q", tokens[0], token)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != adminTokenFile {
		t.Errorf("%v, %v", entries, err)
	}
}

// A file that another user can read, or has put there, is no token: what is private is then refused to everybody.
func TestAdminTokenOfOthers(t *testing.T) {
	content := []byte("0123456789abcdef0123456789")
	for name, put := range map[string]func(path string) error{
		"readable by others": func(path string) error {
			return errors.Join(os.WriteFile(path, content, 0o600), os.Chmod(path, 0o644)) // whatever the umask is
		},
		"a link": func(path string) error {
			if err := os.WriteFile(path+".real", content, 0o600); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		},
		"another user's": func(path string) error {
			if os.Getuid() != 0 {
				t.Skip("only root can give files away")
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return err
			}
			return os.Chown(path, 12345, 12345)
		},
		"empty":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		must(t, put(filepath.Join(dir, adminTokenFile)))
		var log bytes.Buffer
		server, err := (adminFlags{}).open("127.0.0.1:0", dir, slog.New(slog.NewJSONHandler(&log, nil)))
		must(t, err)
		server.Start(admin.Content{}, func(error) {})
		code, _ := get(t, "http://"+server.Address()+"/debug/pprof/", string(content))
		server.Close()
		if said := log.String(); code != 401 || !strings.Contains(said, "refuses profiles") ||
			strings.Contains(said, string(content)) {
			t.Errorf("%s: %d\n%s", name, code, said)
		}
	}
}
