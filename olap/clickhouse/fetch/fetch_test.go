package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/deploy/engine"
	"github.com/runlens/runlens/olap/clickhouse/fetch"
)

const library = "what the engine would be"

// packed is a package with these entries, in their order.
func packed(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var to bytes.Buffer
	zip := gzip.NewWriter(&to)
	archive := tar.NewWriter(zip)
	for _, entry := range entries {
		if entry.Typeflag == 0 {
			entry.Size = int64(len(library))
		}
		if err := archive.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Size > 0 {
			body := library
			if entry.Name != "package/"+engine.File {
				body = strings.ToUpper(library)
			}
			if _, err := archive.Write([]byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func integrity(content []byte) string {
	sum := sha512.Sum512(content)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A registry of one package. Below its path, as some companies have theirs; only for its user.
func registry(content []byte, states string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /npm/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/npm/@chdb%2flib" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"versions":{"1.0.0":{"dist":{"tarball":"//%s/npm/lib-1.0.0.tgz","integrity":"%s"}}}}`,
			r.Host, states)
	})
	mux.HandleFunc("GET /npm/lib-1.0.0.tgz", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user+password != "readersecret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Write(content)
	})
	return mux
}

// install fetches the package from a registry, and installs it below a folder that is not there yet.
func install(t *testing.T, at string, pinned engine.Package) (path string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "new", "1.0.0", engine.File)
	at = strings.Replace(at, "://", "://reader:secret@", 1) + "/npm/"
	source, err := fetch.FromRegistry(t.Context(), at, pinned)
	if err != nil {
		return path, err
	}
	defer source.Close()
	return path, fetch.Install(t.Context(), source, path, func(int64) {})
}

// expectNothing fails if a library, or a part of one, is where it would have gone.
func expectNothing(t *testing.T, path string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(hidden) > 0 {
		t.Errorf("left behind: %q", hidden)
	}
}

// The library of the pinned package is installed, whatever else is in the package, and nothing else.
func TestFetch(t *testing.T) {
	content := packed(t, tar.Header{Name: "package/index.js"}, tar.Header{Name: "../../" + engine.File},
		tar.Header{Name: "package/" + engine.File, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		tar.Header{Name: "package/" + engine.File}, tar.Header{Name: "/tmp/elsewhere"})
	content = append(content, make([]byte, 1<<20)...) // counts for the checksum, though nobody unpacks it
	server := httptest.NewServer(registry(content, "sha512-another"))
	defer server.Close()
	path, err := install(t, server.URL, engine.Package{Name: "@chdb/lib", Version: "1.0.0", Integrity: integrity(content)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != library {
		t.Errorf("installed is %q, %v", got, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o755 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("beside it are %v, %v", all, err)
	}
}

// What is not the pinned package is refused, and nothing of it stays.
func TestRefusedPackages(t *testing.T) {
	whole := packed(t, tar.Header{Name: "package/" + engine.File})
	empty := packed(t, tar.Header{Name: "package/index.js"})
	for name, c := range map[string]struct {
		content   []byte
		integrity string
		version   string
		says      string
	}{
		"another package":        {whole, integrity(empty), "1.0.0", "not the one that was pinned"},
		"something after it":     {append(bytes.Clone(whole), 'x'), integrity(whole), "1.0.0", "not the one that was pinned"},
		"a part of it":           {whole[:len(whole)-9], integrity(whole), "1.0.0", "not the one that was pinned"},
		"no package":             {[]byte("<html>"), integrity(whole), "1.0.0", "not the one that was pinned"},
		"without a library":      {empty, integrity(empty), "1.0.0", "no " + engine.File},
		"another version":        {whole, integrity(whole), "1.0.1", "has no @chdb/lib 1.0.1"},
		"unpinned, and no https": {whole, "", "1.0.0", "must speak https"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(registry(c.content, integrity(c.content)))
			defer server.Close()
			path, err := install(t, server.URL,
				engine.Package{Name: "@chdb/lib", Version: c.version, Integrity: c.integrity})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.says)
			}
			expectNothing(t, path)
		})
	}
}

// Where no checksum is pinned yet, the one that the registry states over https counts.
func TestUnpinnedPackage(t *testing.T) {
	content := packed(t, tar.Header{Name: "package/" + engine.File})
	for states, ok := range map[string]bool{integrity(content): true, "sha1-x " + integrity(content): true,
		integrity(nil): false, "": false} {
		server := httptest.NewTLSServer(registry(content, states))
		usual := http.DefaultClient
		http.DefaultClient = server.Client()
		path, err := install(t, server.URL, engine.Package{Name: "@chdb/lib", Version: "1.0.0"})
		http.DefaultClient = usual
		server.Close()
		if (err == nil) != ok || !ok && !errors.Is(err, fetch.ErrIntegrity) {
			t.Errorf("the registry states %q: %v", states, err)
		}
		if !ok {
			expectNothing(t, path)
		}
	}
}

// A file that was brought here is checked as well, and one that can't be checked is refused.
func TestFromFile(t *testing.T) {
	content := packed(t, tar.Header{Name: "package/" + engine.File})
	file := filepath.Join(t.TempDir(), "lib.tgz")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), engine.File)
	source, err := fetch.FromFile(file, engine.Package{Name: "@chdb/lib", Integrity: integrity(content)})
	if err != nil || source.Bytes != int64(len(content)) {
		t.Fatalf("%d bytes, %v", source.Bytes, err)
	}
	defer source.Close()
	read := int64(0)
	if err := fetch.Install(t.Context(), source, path, func(n int64) { read = n }); err != nil || read != source.Bytes {
		t.Errorf("read %d bytes of %d: %v", read, source.Bytes, err)
	}
	if _, err := fetch.FromFile(file, engine.Package{Name: "@chdb/lib"}); err == nil {
		t.Error("a file is taken without a checksum")
	}
}

// A download that is interrupted ends, with its reason, and leaves nothing.
func TestInterruptedDownload(t *testing.T) {
	content := packed(t, tar.Header{Name: "package/" + engine.File})
	ctx, interrupt := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by hand")
	mux := http.NewServeMux()
	mux.Handle("GET /npm/", registry(content, ""))
	mux.HandleFunc("GET /npm/lib-1.0.0.tgz", func(w http.ResponseWriter, r *http.Request) {
		w.Write(content[:10])
		w.(http.Flusher).Flush()
		interrupt(stop)
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	source, err := fetch.FromRegistry(ctx, server.URL+"/npm", engine.Package{Name: "@chdb/lib", Version: "1.0.0",
		Integrity: integrity(content)})
	if err == nil {
		defer source.Close()
		path := filepath.Join(t.TempDir(), "1.0.0", engine.File)
		err = fetch.Install(ctx, source, path, func(int64) {})
		expectNothing(t, path)
	}
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
}
