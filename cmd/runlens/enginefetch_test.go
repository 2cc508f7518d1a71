package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/runlens/runlens/deploy/engine"
	"github.com/runlens/runlens/olap/clickhouse"
)

// Where the library already is, nothing is fetched: no registry is even asked.
func TestEngineFetchDoesNothingTwice(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("RUNLENS_ENGINE_REGISTRY", "http://127.0.0.1:1")
	dir, err := clickhouse.FetchDir()
	must(t, err)
	path := clickhouse.FetchedLibrary(dir)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, nil, 0o700))
	code, out, stderr := command(t, "", "engine", "fetch")
	if code != exitDone || out != path+" is already there\n" || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// What a registry has under the name and the version is not taken unless it is the pinned package. A file neither.
func TestEngineFetchRefusesAnotherPackage(t *testing.T) {
	pinned, found := engine.PackageFor(runtime.GOOS, runtime.GOARCH)
	if !found || pinned.Integrity == "" {
		t.Skip("no checksum is pinned for this platform")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"versions":{"` + pinned.Version + `":{"dist":{"tarball":"/any"}}}}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "lib.tgz")
	must(t, os.WriteFile(file, []byte("another"), 0o600))
	for _, from := range []string{"--registry=" + server.URL, file} {
		code, out, stderr := command(t, "", "engine", "fetch", "--dir", dir, from)
		if code != exitFailed || out != "" || !strings.Contains(stderr, "is not the one that was pinned") {
			t.Errorf("%s: exit code %d: %s%s", from, code, out, stderr)
		}
	}
	if _, err := os.Stat(clickhouse.FetchedLibrary(dir)); !os.IsNotExist(err) {
		t.Errorf("something was installed: %v", err)
	}
}

// The registry is that of the variable, of npm's variable, or of npm. Without any the command says what to name.
func TestEngineFetchSaysWhatItLacks(t *testing.T) {
	dir, programs := t.TempDir(), t.TempDir()
	t.Setenv("PATH", programs)
	for variable, says := range map[string]string{
		"RUNLENS_ENGINE_REGISTRY": "the registry is no http or https address",
		"npm_config_registry":     "the registry is no http or https address",
		"RUNLENS_UNKNOWN":         "name an npm registry in RUNLENS_ENGINE_REGISTRY or --registry, or the file of @chdb/",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "nowhere")
			code, _, stderr := command(t, "", "engine", "fetch", "--dir", dir)
			if code == exitDone || !strings.Contains(stderr, says) {
				t.Errorf("exit code %d, and not %q: %s", code, says, stderr)
			}
		})
	}
	npm := "#!/bin/sh\n[ \"$*\" = 'config get registry' ] && echo ftp://registry\n"
	must(t, os.WriteFile(filepath.Join(programs, "npm"), []byte(npm), 0o700))
	if code, _, stderr := command(t, "", "engine", "fetch", "--dir", dir); code != exitFailed ||
		!strings.Contains(stderr, "the registry is no http or https address") {
		t.Errorf("with npm: exit code %d: %s", code, stderr)
	}
}

// A binary of 'go install' has the version that was asked for.
func TestModuleVersion(t *testing.T) {
	for of, want := range map[string]string{"v1.2.3": "v1.2.3", "(devel)": "dev", "": "dev"} {
		if got := moduleVersion(&debug.BuildInfo{Main: debug.Module{Version: of}}); got != want {
			t.Errorf("of %q: got %q, want %q", of, got, want)
		}
	}
}
