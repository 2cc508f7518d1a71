package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// A database or files are copied once; a key and a dashboard are there then, which work. A second time changes nothing.
func initFirst(t *testing.T, o office) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("RUNLENS_API_KEY", "")
	flags := append([]string{"init", "--url", o.base, "--org", "acme", "--mapping", filepath.Join(config, "mapping.sql")},
		o.flags...)
	url, conn := operational(t, 20)
	self = "bin/runlens"
	defer func() { self = "runlens" }()
	code, out, stderr := command(t, "", append(flags, "--source", url)...)
	if code != exitDone {
		t.Fatalf("%d %s%s", code, out, stderr)
	}
	for _, want := range []string{"wrote " + filepath.Join(config, "mapping.sql"), "made a key for acme",
		"acme has 20 runs, the latest of ", "\n  bin/runlens serve --", "\n  bin/runlens worker --", " --mapping ",
		"; set RUNLENS_SOURCE there", "\n  bin/runlens console"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %s", out, want)
		}
	}
	dashboard := filepath.Join(config, "runlens", "dashboards", "overview.yaml")
	export := filepath.Join(config, "out.html")
	if code, _, stderr := command(t, "", "console", "--dashboard", dashboard, "--export", export); code != exitDone {
		t.Errorf("the dashboard: %s", stderr)
	}
	contents := func() (all string) {
		for _, file := range []string{dashboard, filepath.Join(config, "mapping.sql"),
			filepath.Join(config, "runlens", "profiles.yaml")} {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			all += string(content)
		}
		return all
	}
	must(t, os.WriteFile(dashboard, []byte("title: mine\n"), 0o600))
	before := contents()
	files := fileOf(t, "runs.ndjson", []byte(`{"record":"run","organization_id":"acme",`+
		`"run_id":"0b7e4d2c-9f3a-4c61-8a55-000000000001","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10",`+
		`"status":"FAILED","created_at":"2026-01-01T09:30:00Z","updated_at":"2026-01-01T09:30:00Z"}`+"\n"))
	code, out, stderr = command(t, "", append(flags, "--files", files)...)
	if code != exitDone || !strings.Contains(out, "the profile default stays") ||
		!strings.Contains(out, "acme has 21 runs") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	if after := contents(); after != before {
		t.Errorf("the second time wrote\n%s", after)
	}
	// What breaks a rule is kept in the file, and the exit code says so.
	mixed := fileOf(t, "mixed.ndjson", []byte(`{"record":"agent"}`+"\n"+agentsNDJSON))
	rejects := filepath.Join(config, "rejects.ndjson")
	code, out, stderr = command(t, "", append(flags, "--files", mixed, "--rejects", rejects)...)
	kept, err := os.ReadFile(rejects)
	if code != exitRejected || err != nil || strings.Count(string(kept), "\n") != 1 ||
		!strings.Contains(out, "runlens serve") {
		t.Errorf("%d %s%s\nrejects, %v:\n%s", code, out, stderr, err, kept)
	}
	// So are rows without an id, however long it takes to find them.
	computed := fileOf(t, "computed.sql", []byte(strings.Replace(postgres.DefaultMapping, "run_id, agent_id, kind",
		"computed(run_id) AS run_id, agent_id, kind", 1)))
	execute(t, conn, `ALTER TABLE runs DROP CONSTRAINT runs_pkey; ALTER TABLE runs ALTER run_id DROP NOT NULL;
		INSERT INTO runs (organization_id, agent_id, status) VALUES ('acme', gen_random_uuid(), 'RUNNING');
		CREATE FUNCTION computed(id uuid) RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN
			IF id IS NULL THEN PERFORM pg_sleep(1); END IF; RETURN id; END $$`)
	code, out, stderr = command(t, "", append(flags, "--source", url, "--mapping", computed)...)
	if code != exitRejected || !strings.Contains(stderr, "rejected: postgres:run line 1: run_id ") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	execute(t, conn, "DROP TABLE runs")
	for says, args := range map[string][]string{
		"a source is needed":       nil,
		"exclude each other":       {"--source", url, "--files", files},
		"change the SELECTs in":    {"--source", url},
		"name an organization":     {"--files", files, "--org", "nobody"},
		"must look like postgres:": {"--source", "nothing"},
	} {
		if code, _, stderr := command(t, "", append(flags, args...)...); code == exitDone || !strings.Contains(stderr, says) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	// The key goes where RUNLENS_PROFILE says, or a flag, as that of login does.
	t.Setenv("RUNLENS_PROFILE", "work")
	code, out, stderr = command(t, "", append(flags, "--files", files)...)
	if code != exitDone || !strings.Contains(out, "made a key for acme") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	code, out, stderr = command(t, "", append(flags, "--files", files, "--profile", "home")...)
	if code != exitDone || !strings.Contains(out, "runlens console --profile home\n") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	profiles, err := profile.Folder(filepath.Join(config, "runlens")).Profiles()
	if want := []string{"default", "home", "work"}; err != nil || !slices.Equal(profiles, want) {
		t.Errorf("%v, %v; want %v", profiles, err, want)
	}
}

// The next commands find the same store: they have its flags, unless a variable or a default says the same.
func TestTheStoreOfTheNextCommands(t *testing.T) {
	flags := storeFlags{EngineLib: "/opt/it's here", DataDir: "data", Cells: "cells.yaml"}
	given := map[string]bool{"engine-lib": true, "data-dir": true}
	if got, want := flags.storeArguments(given), ` --engine-lib '/opt/it'\''s here' --data-dir data`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A database that isn't there is all that is said, in one line that shows no escapes: of its tables nothing is known.
func TestInitWithoutItsDatabase(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	away := "postgres://reader@" + freeAddress(t) + "/records"
	code, _, stderr := command(t, "", append([]string{"init", "--source", away, "--mapping",
		filepath.Join(t.TempDir(), "mapping.sql")}, store(t)...)...)
	_, says, _ := strings.Cut(stderr, "runlens: ")
	if code != exitFailed || !strings.Contains(says, "connection refused") || strings.Contains(says, "SELECTs") ||
		strings.Contains(says, `\`) {
		t.Errorf("%d %s", code, stderr)
	}
}

// The address is kept as all commands write it, and one that is none is refused before anything is copied.
func TestInitCompletesTheAddress(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	c := initCmd{Files: []string{"a.ndjson"}, URL: "127.0.0.1:8688", Profile: "default"}
	if err := c.choose(streams{}); err != nil || c.URL != "http://127.0.0.1:8688" {
		t.Errorf("%q, %v", c.URL, err)
	}
	c.URL = "ftp://x y"
	if err := c.choose(streams{}); err == nil {
		t.Errorf("%q is taken", c.URL)
	}
}
