package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
)

// A backup of which a file was damaged is not restored, whichever table it is of, and the error says what to do.
// Nothing uses what has been restored of it.
func TestDamagedBackup(t *testing.T) {
	flags, dir := store(t), t.TempDir()
	ingestTwoDays(t, flags)
	createKey(t, flags)
	whole := filepath.Join(dir, "whole")
	if code, _, stderr := command(t, "", append([]string{"engine", "backup", whole}, flags...)...); code != exitDone {
		t.Fatal(stderr)
	}
	for _, table := range olaptest.Some(3, "lists/data/runlens/api_keys", "lists/data/runlens/audit_log",
		"records/data/runlens/runs") {
		name := filepath.Base(table)
		backup := filepath.Join(dir, name)
		must(t, os.CopyFS(backup, os.DirFS(whole)))
		overwrite(t, filepath.Join(backup, table, "*", "data.bin"))
		half := []string{"--data-dir", filepath.Join(dir, "of-"+name), "--engine-lib", flags[3]}
		code, out, stderr := command(t, "", append([]string{"engine", "restore", backup}, half...)...)
		if code != exitFailed || out != "" || !strings.Contains(stderr, "remove the data directory before you try again: "+
			"the table "+name+" is damaged") || !strings.Contains(stderr, "CHECKSUM_DOESNT_MATCH") {
			t.Errorf("%s: %d %s%s", name, code, out, stderr)
		}
		for _, args := range [][]string{
			{"engine", "restore", whole}, {"engine", "backup", filepath.Join(dir, "again")}, {"keys", "list", "--org", "acme"},
			{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off"},
		} {
			code, out, stderr := command(t, "", append(args, half...)...)
			if code != exitFailed || out != "" || !strings.Contains(stderr, "into this data directory began and has not ended") {
				t.Fatalf("%s, %q: %d %s%s", name, args, code, out, stderr)
			}
		}
	}
}

// overwrite damages the first file that a pattern matches.
func overwrite(t *testing.T, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	file, err := os.OpenFile(paths[0], os.O_WRONLY, 0)
	must(t, err)
	defer file.Close()
	if _, err := file.WriteAt([]byte("damaged"), 40); err != nil {
		t.Fatal(err)
	}
}

// On a full disk, commands that write say so, and not what ClickHouse says.
func TestWritesOnAFullDisk(t *testing.T) {
	dir := clickhousetest.MemoryDisk(t, "32m")
	flags := storeIn(t, filepath.Join(dir, "data"))
	fill(t, dir)
	for args, says := range map[string]string{
		"keys create --org acme --name n":                       "the disk of ClickHouse is full",
		"engine backup " + filepath.Join(t.TempDir(), "backup"): "the disk of the data directory is full",
	} {
		code, _, stderr := command(t, "", append(strings.Fields(args), flags...)...)
		if code != exitFailed || !strings.Contains(stderr, says) || strings.Contains(stderr, "message:") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
}

// A folder that is there and one that cannot be made are told from each other.
func TestFoldersOfBackups(t *testing.T) {
	there := t.TempDir()
	for folder, says := range map[string]string{
		there: "must be a new one", filepath.Join(there, "no", "folder"): "cannot be made",
	} {
		code, _, stderr := command(t, "", "engine", "backup", folder)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%d %s", code, stderr)
		}
	}
}
