package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every address has a conns.Listener, and every server of net/http the time-outs that it needs: there are two places
// that open an address, and one that makes a server.
func TestEveryAddressIsBounded(t *testing.T) {
	allowed := map[string][]string{
		"net.Listen":   {"../../http/admin/server.go", "listen.go"},
		"http.Server{": {"../../http/conns/server.go"},
		"ListenAndSer": {},
	}
	found := map[string][]string{}
	for _, root := range []string{".", "../internal", "../../http"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			test := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../internal/process/") ||
				strings.HasPrefix(path, "../../http/limit/redistest/")
			if err != nil || !strings.HasSuffix(path, ".go") || test {
				return err
			}
			text, err := os.ReadFile(path)
			for call, files := range allowed {
				if strings.Contains(strings.ReplaceAll(string(text), "net.Listener", ""), call) {
					if found[call] = append(found[call], path); !slices.Contains(files, path) {
						t.Errorf("%s has %s", path, call)
					}
				}
			}
			return err
		})
		must(t, err)
	}
	if len(found["net.Listen"]) != 2 || len(found["http.Server{"]) != 1 {
		t.Errorf("this test finds %v", found)
	}
}

// An address that another program has is refused with what to do.
func TestTakenAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	t.Setenv("RUNLENS_API_KEY", "rl_nobody")
	code, _, stderr := command(t, "", "mcp", "--url", "http://127.0.0.1:1", "--listen", taken.Addr().String())
	if code != exitFailed || !strings.Contains(stderr, "in use") || !strings.Contains(stderr, "choose another port") {
		t.Errorf("%d %s", code, stderr)
	}
}
