package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// Contract 2: wrong usage is 2, with one clear line that says what to do.
func TestUsageErrors(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown command": {[]string{"bake"}, "bake"},
		"too little memory": {[]string{"engine", "--engine-memory", "1000", "--data-dir", folder},
			"--engine-memory must be at least 100000000 bytes"},
		"not UTF-8":    {[]string{"migrate", "up", "--data-dir", folder + "/raw\xff"}, `raw\xff" is not UTF-8`},
		"unknown flag": {[]string{"serve", "--colour"}, "--colour"},
		"rate of nothing": {[]string{"serve", "--rate-limit-per-minute", "0"}, "--rate-limit-per-minute must be " +
			"greater than 0"},
		"no number": {[]string{"serve", "--maintenance-share", "NaN"}, "--maintenance-share must be"},
		"big cache": {[]string{"serve", "--answer-cache-mib", "2000000000000000000"}, "--answer-cache-mib must be 0 to"},
		"no share": {[]string{"worker", "--source", "postgres://x@y/z", "--delete-missing-share", "NaN"},
			"--delete-missing-share must be"},
		"half of TLS":          {[]string{"serve", "--tls-cert", "x"}, "--tls-key"},
		"bad proxy":            {[]string{"serve", "--trusted-proxies", "proxy"}, "--trusted-proxies"},
		"one address twice":    {[]string{"serve", "--admin-listen", "127.0.0.1:8080"}, "--admin-listen"},
		"organization missing": {[]string{"keys", "create"}, "--org"},
		"bad organization":     {[]string{"keys", "create", "--org", "a b"}, "--org must be 1 to 64"},
		"unknown scope":        {[]string{"keys", "create", "--org", "acme", "--scopes", "write"}, "write"},
		"no file":              {[]string{"ingest"}, "file"},
		"no CSV": {[]string{"query", "--metrics", "run_count", "-o", "x.json", "--spreadsheet"},
			"--spreadsheet is for CSV, not for json"},
		"missing file":        {[]string{"ingest", filepath.Join(folder, "nothing")}, "there is no file"},
		"a folder":            {[]string{"ingest", folder}, "is a folder"},
		"bad choice":          {[]string{"ingest", "--on-error", "panic", "-"}, "--on-error"},
		"no step down":        {[]string{"migrate", "down", "--steps", "0"}, "--steps"},
		"no port":             {[]string{"serve", "--listen", "nonsense"}, `--listen: "nonsense" is no address`},
		"no such port":        {[]string{"serve", "--listen", "127.0.0.1:99999"}, "--listen"},
		"no port by name":     {[]string{"serve", "--admin-listen", "nowhere:nothing"}, "--admin-listen"},
		"no port for records": {[]string{"serve", "--ingest-listen", "127.0.0.1"}, "--ingest-listen"},
		"no URL":              {[]string{"migrate", "status", "--clickhouse-url", "ftp://x"}, "must look like clickhouse:"},
		"empty person": {[]string{"purge", "--org", "acme", "--person", "", "--yes"},
			"--person: the value is empty"},
		"empty second person": {[]string{"keys", "create", "--org", "acme", "--person", "a@b.example",
			"--person", ""}, "--person"},
		"empty expiry": {[]string{"keys", "create", "--org", "acme", "--expires", ""},
			"--expires: the value is empty"},
		"empty network": {[]string{"keys", "create", "--org", "acme", "--networks", ""},
			"--networks: the value is empty"},
		"empty organization": {[]string{"audit", "--org", ""}, "--org: the value is empty"},
		"empty question":     {[]string{"query", "", "--metrics", "run_count"}, "<saved>: the value is empty"},
		"empty file":         {[]string{"ingest", "-", "", "--dry-run"}, "<file>: the value is empty"},
		"empty key":          {[]string{"keys", "revoke", "", "--data-dir", folder}, "<key-id>: the value is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want 2 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

// Without a command there is help, and no error.
func TestHelpWithoutACommand(t *testing.T) {
	code, out, stderr := command(t, "")
	_, help, _ := command(t, "", "--help")
	if code != exitDone || out != help || !strings.Contains(out, "Usage: runlens <command>") || stderr != "" {
		t.Errorf("exit code %d, not 0, or not the help:\n%s%s", code, out, stderr)
	}
}

// A setting that cannot work at start is one clear line and exit code 1, without the engine's words.
func TestStartFailures(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no such library": {[]string{"serve", "--engine-lib", "/nowhere", "--data-dir", t.TempDir(), "--listen",
			"127.0.0.1:0", "--admin-listen", "off"}, "run `runlens engine fetch`\n"},
		"address of others": {[]string{"serve", "--listen", "192.0.2.1:8080", "--admin-listen", "off"}, "--listen"},
		"no certificate": {[]string{"serve", "--listen", "127.0.0.1:0", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"},
			"--tls-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", c.args...)
			if code != exitFailed || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want 1 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

// What ClickHouse says can have statements with their values: whichever command fails, it is not printed.
func TestErrorsWithoutStatements(t *testing.T) {
	full := &clickhouse.Exception{Code: 243, Message: "Cannot reserve 1 MiB for ada@x.example. (NOT_ENOUGH_SPACE)"}
	other := &clickhouse.Exception{Code: 40, Message: "ada@x.example. (CHECKSUM_DOESNT_MATCH)"}
	blank := &clickhouse.Exception{Code: 40, Message: "here\n\nof\n\nada@x.example. (CHECKSUM_DOESNT_MATCH)"}
	const said = "the store: ClickHouse exception 40 CHECKSUM_DOESNT_MATCH"
	for want, err := range map[string]error{
		"record: the disk of ClickHouse is full; free some space and start again": fmt.Errorf("record: %w", full),
		"read: " + said:       fmt.Errorf("read: %w", other),
		said:                  fmt.Errorf("read: %w", blank),
		"in words of its own": stepFailure{"in words of its own", other},
		"cannot count, remove the data directory before you try again: " + said: unrestored("count",
			fmt.Errorf("read: %w", other)),
	} {
		want = "runlens: " + want + "\n"
		var stderr bytes.Buffer
		if code := exitCode(err, "x", &stderr); code != exitFailed || stderr.String() != want {
			t.Errorf("%d, it says\n%swant\n%s", code, stderr.String(), want)
		}
	}
}

// Of several errors all are said, and the exit code is that which says most: what failed hides neither rejects nor a
// threshold, and they do not hide it.
func TestErrorsOfSeveralCells(t *testing.T) {
	failure, usage := errors.New("is away"), usageError{errors.New("names nothing")}
	rejected, crossed := exitError{exitRejected}, exitError{exitThreshold}
	for name, c := range map[string]struct {
		err  error
		code int
		says string
	}{
		"nothing": {errors.Join(nil, ofCell("a", nil)), exitDone, ""},
		"rejects": {errors.Join(ofCell("a", rejected), nil), exitRejected, ""},
		"rejects and a failure": {errors.Join(ofCell("a", rejected), ofCell("b", failure)), exitFailed,
			"runlens: cell b: is away\n"},
		"a difference": {errors.Join(ofCell("a", rejected), ofCell("b", exitError{exitFailed})), exitFailed, ""},
		"within one cell": {ofCell("a", errors.Join(rejected, failure, errors.Join(usage))), exitFailed,
			"runlens: cell a: is away\nx: cell a: names nothing\n"},
		"a threshold and usage": {errors.Join(crossed, usage), exitUsage, "x: names nothing\n"},
		"a threshold":           {errors.Join(rejected, crossed), exitThreshold, ""},
	} {
		var stderr bytes.Buffer
		if code := exitCode(c.err, "x", &stderr); code != c.code || stderr.String() != c.says {
			t.Errorf("%s: %d, want %d; it says\n%swant\n%s", name, code, c.code, stderr.String(), c.says)
		}
	}
}

// What could not be written is a failure of every command.
func TestOutputThatIsLost(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"purge", "--help"}, {"worker", "layout"}, nil} {
		var stderr logtest.Buffer
		code := run(context.Background(), args, streams{strings.NewReader(""), fullDisk{}, &stderr})
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: %d %s", args, code, stderr.String())
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A variable that is empty is none: a file of a service passes all that it knows.
func TestEmptyVariables(t *testing.T) {
	for name, value := range map[string]string{"RUNLENS_LISTEN": "", "RUNLENS_RATE_LIMIT_PER_MINUTE": "", "OTHER": ""} {
		t.Setenv(name, value)
	}
	t.Setenv("RUNLENS_DATA_DIR", "kept")
	forgetEmptyVariables()
	c := serveWith(t)
	if _, there := os.LookupEnv("OTHER"); !there || c.RateLimitPerMinute != 60 || c.DataDir != "kept" {
		t.Errorf("OTHER: %t; %d requests a minute, %s", there, c.RateLimitPerMinute, c.DataDir)
	}
	if _, there := os.LookupEnv("RUNLENS_LISTEN"); there {
		t.Error("RUNLENS_LISTEN is left")
	}
}

func TestMigrateAndVersion(t *testing.T) {
	flags := store(t)
	migrations, err := filepath.Glob("../../schema/migrations/*.up.sql")
	must(t, err)
	var newest int
	if _, err := fmt.Sscanf(filepath.Base(migrations[len(migrations)-1]), "%d_", &newest); err != nil {
		t.Fatal(err)
	}
	current := fmt.Sprintf("version %d of %d (current)\n", newest, newest)
	code, out, stderr := command(t, "", append([]string{"migrate", "status"}, flags...)...)
	if code != 0 || out != current {
		t.Errorf("status: %d %q %s", code, out, stderr)
	}
	code, out, _ = command(t, "", append([]string{"migrate", "down", "--steps",
		fmt.Sprint(len(migrations))}, flags...)...)
	if code != 0 || !strings.HasPrefix(out, fmt.Sprintf("version 0 of %d (pending", newest)) {
		t.Errorf("down: %d %q", code, out)
	}
	code, out, _ = command(t, "", append([]string{"migrate", "up"}, flags...)...)
	if code != 0 || out != current {
		t.Errorf("up: %d %q", code, out)
	}
	code, out, _ = command(t, "", "version", "--engine-lib", clickhousetest.Library())
	if code != 0 || !strings.HasPrefix(out, "runlens ") || !strings.Contains(out, "\ncommit ") ||
		!strings.Contains(out, "\nengine ClickHouse 2") {
		t.Errorf("version: %d %q", code, out)
	}
}

// Contract 2: the fields of keys create; a key without scopes; list and revoke.
func TestKeys(t *testing.T) {
	flags := store(t)
	code, out, _ := command(
		t,
		"",
		append([]string{"keys", "create", "--org", "acme", "--name", "n", "--scopes", "", "--output", "json"}, flags...)...)
	var created map[string]any
	if err := json.Unmarshal([]byte(out), &created); err != nil || code != 0 {
		t.Fatal(code, err, out)
	}
	if len(created) != 6 || created["organization_id"] != "acme" || created["name"] != "n" ||
		len(created["scopes"].([]any)) != 0 ||
		!strings.HasPrefix(created["key"].(string), "rl_"+created["key_id"].(string)+"_") {
		t.Errorf("created %v", created)
	}
	if _, err := time.Parse(time.RFC3339, created["created_at"].(string)); err != nil {
		t.Error(err)
	}
	code, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme"}, flags...)...)
	if code != 0 || !strings.Contains(out, created["key_id"].(string)) || strings.Contains(out, created["key"].(string)) {
		t.Errorf("list: %d\n%s", code, out)
	}
	code, _, stderr := command(t, "", append([]string{"keys", "revoke", "unknown"}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "keys list") {
		t.Errorf("revoke an unknown key: %d %s", code, stderr)
	}
	if code, _, stderr = command(t, "", append([]string{"keys", "revoke", created["key_id"].(string)},
		flags...)...); code != 0 {
		t.Errorf("revoke: %d %s", code, stderr)
	}
	code, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme", "--output", "json"}, flags...)...)
	if code != 0 || !strings.Contains(out, `"revoked_at":"2`) {
		t.Errorf("list: %d\n%s", code, out)
	}
}

func TestIngestCommand(t *testing.T) {
	flags := store(t)
	const good = `{"record":"agent","organization_id":"acme","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10",` +
		`"name":"Support","updated_at":"2026-01-31T09:30:00Z"}` + "\n"
	folder := t.TempDir()
	file, rejects := filepath.Join(folder, "a.ndjson"), filepath.Join(folder, "rejects")
	must(t, os.WriteFile(file, []byte(good+"{}\n"+good), 0o600))
	ingest := func(stdin string, args ...string) (int, string, string) {
		return command(t, stdin, append(append([]string{"ingest"}, args...), flags...)...)
	}
	code, out, stderr := ingest("", "--rejects", rejects, file)
	if code != exitRejected || !strings.HasPrefix(out, "read 3, stored: agents 2, runs 0, attributions 0, rejected 1") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	content, err := os.ReadFile(rejects)
	if want := `{"source":"` + file + `","line":2,"field":"record","error":"is required: agent, run or ` +
		`attribution","record":{}}` + "\n"; err != nil ||
		string(content) != want {
		t.Errorf("rejects %q, %v, want %q", content, err, want)
	}
	if code, _, stderr = ingest("", "--on-error", "stop", file); code != exitFailed ||
		!strings.Contains(stderr, "line 2") {
		t.Errorf("stop: %d %s", code, stderr)
	}
	if code, out, _ = ingest(good, "-"); code != 0 || !strings.HasPrefix(out, "read 1, stored: agents 1") {
		t.Errorf("standard input: %d %s", code, out)
	}
	if code, _, stderr = ingest("{}", "-"); code != exitRejected ||
		!strings.Contains(stderr, "rejected: - line 1: record is required") {
		t.Errorf("without --rejects: %d %s", code, stderr)
	}
	if code, _, stderr = ingest(good, "--rejects", filepath.Join(folder, "nothing", "x"), "-"); code != exitUsage {
		t.Errorf("rejects nowhere: %d %s", code, stderr)
	}
	// A dry run needs no store.
	if code, out, stderr = command(t, good, "ingest", "--dry-run", "--engine-lib", "/nowhere", "-"); code != 0 ||
		!strings.Contains(out, "valid: agents 1") {
		t.Errorf("dry run: %d %s %s", code, out, stderr)
	}
}
