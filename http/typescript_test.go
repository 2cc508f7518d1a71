package httpapi_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

const typescript = "client/typescript"

var update = flag.Bool("update", false, "rewrite client/typescript/src/api.ts from openapi.yaml")

// The types of the TypeScript client are those of the description.
func TestTypeScriptTypes(t *testing.T) {
	description, err := filepath.Abs("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	generated := output(t, workplace(t), nil, "node", "node_modules/openapi-typescript/bin/cli.js", description)
	want := "// Generated from http/openapi.yaml: go test ./http -run TestTypeScriptTypes -update\n" + generated + "\n"
	path := filepath.Join(typescript, "src", "api.ts")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what is generated now (%v); run the command in its first line", path, err)
	}
}

// The TypeScript client's own tests, and the example of its README, against a real server.
func TestTypeScriptClient(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	at, internal := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), "internal"
	var records olaptest.Records
	for i := range 1001 {
		person := fmt.Sprintf("person.%04d@test.invalid", i)
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ShortID(i),
			CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "COMPLETED", Identifier: &person, Type: &internal})
	}
	olaptest.Load(t, store.Conn(), records)
	dir := typescriptProject(t)
	env := []string{"BASE=" + s.base, "KEY=" + s.reader(), "BARE=" + s.key("acme"), "RUNLENS_URL=" + s.base}
	t.Run("tests", func(t *testing.T) { t.Log(output(t, dir, env, "node", "--test", "out/client.test.js")) })
	t.Run("README", func(t *testing.T) {
		got := output(t, dir, append(env, "RUNLENS_API_KEY="+s.reader()), "node", "out/example.js")
		if got != "2026-01-05 1001 1" {
			t.Errorf("got %s", got)
		}
		without := s.key("acme") // a refusal that is no QueryError is thrown
		got = output(t, dir, append(env, "RUNLENS_API_KEY="+without), "sh", "-c", "! node out/example.js 2>&1")
		if !strings.Contains(got, "PermissionError") {
			t.Errorf("got %s", got)
		}
	})
}

// typescriptProject is a folder with a program that uses the built package as its users do.
func typescriptProject(t *testing.T) string {
	t.Helper()
	dir := workplace(t) // its node_modules has the compiler
	packed, app := filepath.Join(dir, "runlens-client"), filepath.Join(dir, "app")
	if err := os.CopyFS(filepath.Join(packed, "src"), os.DirFS(filepath.Join(typescript, "src"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "tsconfig.json"} {
		if err := copyFile(filepath.Join(packed, name), filepath.Join(typescript, name)); err != nil {
			t.Fatal(err)
		}
	}
	const compiler = "../node_modules/typescript/bin/tsc"
	output(t, packed, nil, "node", compiler)
	if err := os.MkdirAll(filepath.Join(app, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(packed, filepath.Join(app, "node_modules", "runlens-client")); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(typescript, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```ts\n")
	example, _, found := strings.Cut(example, "```\n")
	tests, err := os.ReadFile(filepath.Join(typescript, "test", "client.test.ts"))
	if !found || err != nil {
		t.Fatal("no example or no tests: ", err)
	}
	for name, content := range map[string]string{"package.json": `{"type":"module"}`, "example.ts": example,
		"client.test.ts": string(tests)} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output(t, app, nil, "node", compiler, "--strict", "--skipLibCheck", "--types", "node", "--target", "es2022",
		"--module", "nodenext", "--outDir", "out", "example.ts", "client.test.ts")
	return app
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
