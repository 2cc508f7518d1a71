package httpapi_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // which clients of oapi-codegen import

	"github.com/runlens/runlens/olap/olaptest"
)

// nodeModules is where `make generators` puts the generators and linters.
const nodeModules = "../deploy/generators/node_modules"

// The description as four generators read it: the clients that they write compile, and get a live answer.
func TestGeneratedClients(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{
		{Organization: "acme", ID: olaptest.ShortID(1), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED"},
		{Organization: "acme", ID: olaptest.ShortID(2), CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED"},
		{Organization: "acme", ID: olaptest.ShortID(3), CreatedAt: at.AddDate(0, 0, 2), UpdatedAt: at, Kind: "agent",
			Status: "FAILED"},
	}})
	const want = `[["2026-01-05",2],["2026-01-07",1]] limit 2`
	env := []string{"BASE=" + s.base, "KEY=" + s.reader()}
	dir := workplace(t)

	t.Run("oapi-codegen", func(t *testing.T) {
		client, program := filepath.Join(dir, "oapi-codegen", "client.go"), filepath.Join(dir, "oapi-codegen", "main.go")
		output(t, ".", env, "go", "tool", "oapi-codegen", "-package", "main", "-generate", "types,client", "-o", client,
			"openapi.yaml")
		if got := output(t, ".", env, "go", "run", "-ldflags=-w", client, program); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	description, err := filepath.Abs("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	output(t, dir, env, "node", "generate.mjs", description)
	output(t, dir, env, "node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
		"--types", "node", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler",
		"openapi-typescript.ts", "orval.ts", "hey-api.ts")
	for _, generator := range []string{"openapi-typescript", "orval", "hey-api"} {
		t.Run(generator, func(t *testing.T) {
			bundle := filepath.Join(dir, generator+".bundle.mjs")
			output(t, dir, env, "node_modules/.bin/esbuild", generator+".ts", "--bundle", "--platform=node", "--format=esm",
				"--log-level=warning", "--outfile="+bundle)
			if got := output(t, dir, env, "node", bundle); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Two linters find nothing in the descriptions, and what is wrong with one whose example is.
func TestDescriptionIsLinted(t *testing.T) {
	dir := workplace(t)
	ingest, err := filepath.Abs("ingest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if found := output(t, dir, nil, "node", "lint.mjs", ingest); strings.Contains(found, "redocly ") ||
		strings.Contains(found, "spectral ") {
		t.Error(found)
	}
	content, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "openapi.yaml")
	for example, finds := range map[string]bool{
		"queryId: 5a6e5d3e-7f0c-4b5e-9d52-0d2f5c5f7d11": false, "queryID: 1": true,
	} {
		text := strings.Replace(string(content), "queryId: 5a6e5d3e-7f0c-4b5e-9d52-0d2f5c5f7d11", example, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found := output(t, dir, nil, "node", "lint.mjs", file)
		for _, linter := range []string{"redocly ", "spectral "} {
			if strings.Contains(found, linter) != finds {
				t.Errorf("%s finds something in %q: %v, want %v\n%s", linter, example, !finds, finds, found)
			}
		}
	}
}

// workplace is a folder with the programs of testdata/generators and what they import.
func workplace(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(nodeModules); err != nil {
		t.Fatal("run `make generators` first: ", err)
	}
	modules, err := filepath.Abs(nodeModules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/generators")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a program in a folder and returns what it printed, trimmed. It ends the test if the program fails.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	var stderr strings.Builder
	command.Dir, command.Stderr = dir, &stderr
	command.Env = append(os.Environ(), env...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
