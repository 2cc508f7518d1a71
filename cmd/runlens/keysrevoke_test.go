package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// On a disk that is full to the last byte a key is revoked on every running server. When the space for that is used up,
// the command says what to do; once there is space again, it is kept again.
func TestRevokeOnAFullDisk(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := clickhousetest.MemoryDisk(t, "128m")
	flags := []string{"--data-dir", filepath.Join(dir, "data"), "--engine-lib", clickhousetest.Library()}
	serve := append(flags, "--maintenance-share", "0", "--rate-limit-per-minute", "10000")
	first, _, endFirst := started(t, serve...)
	second, _, endSecond := started(t, serve...)
	ids, keys := make([]string, 3), make([]string, 3)
	for i := range ids {
		ids[i], keys[i] = createKey(t, flags)
	}
	answers := func(base string, key int, want int) {
		t.Helper()
		code, text := 0, ""
		if !harness.Poll(t.Context(), 30*time.Second, 10*time.Millisecond, func() bool {
			code, text = post(t, base, keys[key], totals)
			return code == want
		}) {
			t.Errorf("key %d: %d %s, want %d", key, code, text, want)
		}
	}
	for key := range keys {
		answers(first, key, 200)
		answers(second, key, 200)
	}
	revoke := func(key, want int) string {
		t.Helper()
		code, _, stderr := command(t, "", append([]string{"keys", "revoke", ids[key]}, flags...)...)
		if code != want {
			t.Fatalf("revoking key %d ended with %d, want %d:\n%s", key, code, want, stderr)
		}
		return stderr
	}

	filler := fill(t, dir)
	create := append([]string{"keys", "create", "--org", "acme"}, flags...)
	if code, _, stderr := command(t, "", create...); code == exitDone {
		t.Fatalf("the disk is not full:\n%s", stderr)
	}
	revoke(0, exitDone)
	answers(first, 0, 401)
	answers(second, 0, 401)
	answers(first, 1, 200)

	fill(t, dir)
	if said := revoke(1, exitFailed); !strings.Contains(said, "may still be valid: free some space and run this again") ||
		strings.Contains(said, "Code: 243") || strings.Contains(said, "store/") {
		t.Error(said)
	}

	must(t, os.Remove(filler))
	revoke(1, exitDone) // and leaves space in reserve
	fill(t, dir)
	revoke(2, exitDone)
	for key := range keys {
		answers(first, key, 401)
		answers(second, key, 401)
	}

	// Without a server the engine has to be started for it.
	must(t, os.Remove(filler))
	id, _ := createKey(t, flags) // and leaves space in reserve
	endFirst()
	endSecond()
	fill(t, dir)
	ids[0] = id
	revoke(0, exitDone)
	list := append([]string{"keys", "list", "--org", "acme"}, flags...)
	if code, out, stderr := command(t, "", list...); code != exitDone || strings.Count(out, "revoked") != 4 {
		t.Errorf("%d %s %s", code, out, stderr)
	}
}
