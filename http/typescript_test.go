package httpapi_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
)

const typescript = "client/typescript"

var update = flag.Bool("update", false, "rewrite client/typescript/src/api.ts from openapi.yaml, and dist from src")

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
		got = output(t, dir, append(env, "RUNLENS_API_KEY="+s.reader()), "node", "out/lines.js")
		if got != "2 30" {
			t.Errorf("three lines: got %s", got)
		}
		without := s.key("acme") // a refusal that is no QueryError is thrown
		got = output(t, dir, append(env, "RUNLENS_API_KEY="+without), "sh", "-c", "! node out/example.js 2>&1")
		if !strings.Contains(got, "PermissionError") {
			t.Errorf("got %s", got)
		}
	})
}

// compiler is the path of the TypeScript compiler from a folder in a workplace.
const compiler = "../node_modules/typescript/bin/tsc"

// What is in dist is what the compiler makes of src now.
func TestTypeScriptBuild(t *testing.T) {
	work := filepath.Join(workplace(t), "build")
	if err := os.CopyFS(filepath.Join(work, "src"), os.DirFS(filepath.Join(typescript, "src"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "tsconfig.json"} {
		if err := copyFile(filepath.Join(work, name), filepath.Join(typescript, name)); err != nil {
			t.Fatal(err)
		}
	}
	output(t, work, nil, "node", compiler)
	built, kept := filepath.Join(work, "dist"), filepath.Join(typescript, "dist")
	if *update {
		if err := errors.Join(os.RemoveAll(kept), os.CopyFS(kept, os.DirFS(built))); err != nil {
			t.Fatal(err)
		}
	}
	if have, want := contentOf(t, kept), contentOf(t, built); !maps.Equal(have, want) {
		t.Error("dist is not what src is compiled to: go test ./http -run TestTypeScript -update")
	}
}

// contentOf is the content of every file of a folder.
func contentOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

// The package has the repository's licence.
func TestClientsHaveTheLicence(t *testing.T) {
	want, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{typescript, "client/python"} {
		if have, err := os.ReadFile(filepath.Join(client, "LICENSE")); err != nil || string(have) != string(want) {
			t.Errorf("the licence of %s is another one, %v", client, err)
		}
	}
}

// typescriptProject is a folder with programs that use the package as its users do: installed into an empty project,
// without a download.
func typescriptProject(t *testing.T) string {
	t.Helper()
	app := filepath.Join(workplace(t), "app") // the node_modules beside it have the compiler
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	packed, err := filepath.Abs(typescript)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(typescript, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(typescript, "test", "client.test.ts"))
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, block := range strings.Split(string(readme), "```ts\n")[1:] {
		code, _, _ := strings.Cut(block, "```\n")
		examples = append(examples, code)
	}
	if len(examples) != 2 {
		t.Fatalf("%d examples", len(examples))
	}
	lines := strings.Replace(examples[0], `"http://127.0.0.1:8080"`, `process.env.RUNLENS_URL ?? ""`, 1) +
		"console.log(columns.length, rows.length);\n"
	for name, content := range map[string]string{"package.json": `{"type":"module"}`, "example.ts": examples[1],
		"lines.ts": lines, "client.test.ts": string(tests),
		"common.cts": "import { Runlens } from \"runlens-client\";\nexport const client: typeof Runlens = Runlens;\n"} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output(t, app, nil, "npm", "install", "--offline", "--no-audit", "--no-fund", packed)
	compile := []string{compiler, "--strict", "--skipLibCheck", "--types", "node", "--target", "es2022", "--module"}
	for _, resolution := range olaptest.Some(3, []string{"node16", "--noEmit"},
		[]string{"esnext", "--noEmit", "--moduleResolution", "bundler"},
		[]string{"esnext", "--noEmit", "--moduleResolution", "node10"}) {
		output(t, app, nil, "node", slices.Concat(compile, resolution, []string{"lines.ts", "example.ts"})...)
	}
	output(t, app, nil, "node", append(compile, "nodenext", "--outDir", "out", "lines.ts", "example.ts", "common.cts",
		"client.test.ts")...)
	return app
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
