package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const catalogPath = "/api/v1/analytics/catalog"

// revoked is the time after which a revocation holds, 5 s (contract 2), with what a busy machine takes longer. Package
// auth tests the 5 s.
const revoked = 15 * time.Second

// keysCommand runs a command that prints one JSON object.
func keysCommand(t *testing.T, flags []string, args ...string) map[string]any {
	t.Helper()
	code, out, stderr := command(t, "", append(append(args, "--output", "json"), flags...)...)
	var answer map[string]any
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil {
		t.Fatalf("%v: exit code %d, %v\n%s%s", args, code, err, out, stderr)
	}
	return answer
}

// eventually sends requests until the answer has a status.
func eventually(t *testing.T, base, key string, status int, within time.Duration) {
	t.Helper()
	code := 0
	if !harness.Poll(t.Context(), within, 10*time.Millisecond, func() bool {
		code, _ = get(t, base+catalogPath, key)
		return code == status
	}) {
		t.Fatalf("still %d after %v, want %d", code, within, status)
	}
}

// A rotated key and its successor are both valid until the overlap is over; the successor has all that the first one
// had.
func TestRotate(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, append([]string{"--rate-limit-per-minute", "100000"}, flags...)...)
	first := keysCommand(t, flags, "keys", "create", "--org", "acme", "--name", "n", "--networks", "127.0.0.0/8,::1")
	old := first["key"].(string)
	eventually(t, base, old, 200, 0)

	second := keysCommand(t, flags, "keys", "rotate", first["key_id"].(string), "--overlap", "1h", "--expires", "90d")
	for _, field := range []string{"organization_id", "name", "scopes", "networks"} {
		if fmt.Sprint(second[field]) != fmt.Sprint(first[field]) {
			t.Errorf("%s: %v, want %v", field, second[field], first[field])
		}
	}
	ends, err := time.Parse(time.RFC3339, second["rotated_key_expires_at"].(string))
	if err != nil || second["rotated_key_id"] != first["key_id"] || time.Until(ends) > time.Hour ||
		time.Until(ends) < 59*time.Minute {
		t.Errorf("%v, %v", second, err)
	}
	if expires, err := time.Parse(time.RFC3339, second["expires_at"].(string)); err != nil ||
		time.Until(expires).Round(24*time.Hour) != 90*24*time.Hour {
		t.Errorf("expires %v, %v", second["expires_at"], err)
	}
	eventually(t, base, old, 200, 0)
	eventually(t, base, second["key"].(string), 200, 0)

	// Without an overlap the first one ends at once; running servers learn of it as of a revocation.
	third := keysCommand(t, flags, "keys", "rotate", second["key_id"].(string), "--overlap", "0s", "--expires", "90d")
	eventually(t, base, second["key"].(string), 401, revoked)
	eventually(t, base, third["key"].(string), 200, 0)

	whole := third["key"].(string)
	for _, args := range [][]string{
		{"keys", "revoke", whole}, {"usage", "--key-id", whole}, {whole}, {"login", whole}, {"login", "--" + whole},
		{"query", "@" + whole}, {"query", "--limit", whole}, {"query", "--limit=" + whole}, {"serve", whole, "--help"},
		{"query", "--filter", "source=Bearer " + whole + ",web"}, {"query", "@\xff" + whole},
	} {
		code, out, stderr := command(t, "", args...)
		if code != exitUsage || strings.Contains(out+stderr, whole) || !strings.Contains(stderr, third["key_id"].(string)) {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, stderr)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"ended":       {[]string{second["key_id"].(string)}, exitFailed, "no longer valid"},
		"unknown":     {[]string{"unknown"}, exitFailed, "keys list"},
		"end unsaid":  {[]string{third["key_id"].(string)}, exitUsage, "--expires"},
		"end gone by": {[]string{third["key_id"].(string), "--expires", "2020-01-01"}, exitUsage, "--expires"},
		"no duration": {[]string{third["key_id"].(string), "--overlap", "soon"}, exitUsage, "--overlap"},
		"after 2261": {[]string{third["key_id"].(string), "--overlap", "2100000h", "--expires", "90d"}, exitUsage,
			"--overlap: "},
		"below zero":     {[]string{third["key_id"].(string), "--overlap=-1h"}, exitUsage, "--overlap"},
		"not expressive": {[]string{third["key_id"].(string), "--expires", "0d"}, exitUsage, "--expires"},
	} {
		code, _, stderr := command(t, "", append(append([]string{"keys", "rotate"}, c.args...), flags...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
}

// A key ends at the instant that was said, also on a server that has just verified it.
func TestExpiry(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, append([]string{"--rate-limit-per-minute", "100000"}, flags...)...)
	created := keysCommand(t, flags, "keys", "create", "--org", "acme", "--expires", "2s")
	if len(created) != 7 {
		t.Errorf("created %v", created)
	}
	end, err := time.Parse(time.RFC3339, created["expires_at"].(string))
	must(t, err)
	for {
		before := time.Now()
		code, _ := get(t, base+catalogPath, created["key"].(string))
		after := time.Now()
		if code == 200 && !before.Before(end) || code != 200 && after.Before(end) {
			t.Fatalf("%d between %v and %v of the end", code, before.Sub(end), after.Sub(end))
		}
		if code == 401 {
			break
		}
	}
	if code, out, _ := command(t, "", append([]string{"keys", "list", "--org", "acme"}, flags...)...); code != 0 ||
		!strings.Contains(out, "expired "+created["expires_at"].(string)) {
		t.Errorf("%d\n%s", code, out)
	}
}

// A key with networks is valid there alone; behind a proxy that is trusted the caller's address counts, and nobody
// else's word.
func TestKeyNetworks(t *testing.T) {
	flags := store(t)
	here := keysCommand(t, flags, "keys", "create", "--org", "acme", "--networks", "127.0.0.1")["key"].(string)
	away := keysCommand(t, flags, "keys", "create", "--org", "acme", "--networks",
		"192.0.2.0/24,2001:db8::/32")["key"].(string)
	direct, _, _ := started(t, append([]string{"--maintenance-share", "0"}, flags...)...)
	proxied, _, _ := started(
		t,
		append([]string{"--maintenance-share", "0", "--trusted-proxies", "127.0.0.0/8,198.51.100.0/24"}, flags...)...)
	for _, c := range []struct {
		base, key string
		forwarded []string
		status    int
	}{
		{direct, here, nil, 200}, {direct, away, nil, 401}, {direct, away, []string{"192.0.2.1"}, 401},
		{direct, here, []string{"192.0.2.1"}, 200},
		{proxied, away, []string{"192.0.2.1"}, 200}, {proxied, away, []string{"2001:db8::7"}, 200},
		{proxied, here, []string{"192.0.2.1"}, 401},
		{proxied, away, []string{"203.0.113.1, 192.0.2.1, 198.51.100.2"}, 200},
		{proxied, away, []string{"192.0.2.1, 203.0.113.1"}, 401},
		{proxied, away, []string{"203.0.113.1", "192.0.2.1"}, 200},
		{proxied, away, []string{"192.0.2.1", "203.0.113.1"}, 401},
		{proxied, away, []string{"192.0.2.1, nonsense"}, 401}, {proxied, here, nil, 200},
		{proxied, here, []string{"127.0.0.1"}, 200},
	} {
		request, err := http.NewRequest(http.MethodGet, c.base+catalogPath, nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+c.key)
		request.Header["X-Forwarded-For"] = c.forwarded
		if status, body := send(t, request); status != c.status {
			t.Errorf("forwarded for %q, proxied: %v, by the key of here: %v: %d, want %d %s", c.forwarded, c.base == proxied,
				c.key == here, status, c.status, body)
		}
	}
	for _, bad := range []string{"10.0.0.0/33", "example.com", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.0.0.1," +
		manyNetworks()} {
		if code, _, stderr := command(t, "", append([]string{"keys", "create", "--org", "acme", "--networks", bad},
			flags...)...); code != exitUsage ||
			!strings.Contains(stderr, "--networks") {
			t.Errorf("%s: exit code %d %s", bad, code, stderr)
		}
	}
}

func manyNetworks() string {
	var networks []string
	for i := range 16 {
		networks = append(networks, fmt.Sprintf("192.0.2.%d", i))
	}
	return strings.Join(networks, ",")
}

// Every change of keys and every purge is on record, also that of the organization itself, and nothing in the record
// names a secret or a person.
func TestAudit(t *testing.T) {
	flags := store(t)
	created := keysCommand(t, flags, "keys", "create", "--org", "acme", "--name", "Ada's laptop", "--networks",
		"192.0.2.77")
	rotated := keysCommand(t, flags, "keys", "rotate", created["key_id"].(string))
	for _, args := range [][]string{
		{"keys", "revoke", rotated["key_id"].(string)}, {"keys", "rotate-cursor-secret"},
		{"purge", "--org", "acme", "--person", "ada@example.com", "--yes"}, {"purge", "--org", "acme", "--yes"},
	} {
		if code, _, stderr := command(t, "", append(args, flags...)...); code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	list := func(args ...string) (out string, lines []string) {
		t.Helper()
		code, out, stderr := command(t, "", append(append([]string{"audit", "--output", "json"}, args...), flags...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		host, _ := os.Hostname()
		for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
			var e auditLine
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err, line)
			}
			if _, err := time.Parse(time.RFC3339, e.At); err != nil || !strings.HasSuffix(e.Actor, "@"+host) {
				t.Error(line)
			}
			if e.Outcome != "begun" {
				lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Outcome, e.Action, e.KeyID, e.Details))
			}
		}
		return out, lines
	}
	ofKey := func(action string, key map[string]any, more string) string {
		return fmt.Sprintf(`done keys %s %s {"networks":1,%s"scopes":["analytics:read"]}`, action, key["key_id"], more)
	}
	want := []string{
		ofKey(
			"create", created, "",
		), ofKey("rotate", rotated, fmt.Sprintf(`"rotated_key_id":"%s",`, created["key_id"])), ofKey("revoke", rotated, ""),
		`done purge  {"of":"person"}`, `done purge  {"of":"organization"}`,
	}
	out, got := list("--org", "acme")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, secret := range []string{"laptop", "@example", "192.0.2.77", created["key"].(string),
		strings.Split(rotated["key"].(string), "_")[2]} {
		if strings.Contains(out, secret) {
			t.Errorf("the log contains %q:\n%s", secret, out)
		}
	}
	if all, _ := list(); !strings.Contains(all, `"action":"keys rotate-cursor-secret"`) {
		t.Errorf("not in the log: the rotation of the cursor secret\n%s", all)
	}
	if code, out, _ := command(t, "", append([]string{"audit", "--org", "acme"}, flags...)...); code != 0 ||
		!strings.Contains(out, "purge") {
		t.Errorf("%d\n%s", code, out)
	}
}

// The whole command: with a token the admin address answers only who has it, and never with the command line.
func TestAdminToken(t *testing.T) {
	flags := append(store(t), "--maintenance-share", "0")
	t.Setenv("RUNLENS_ADMIN_TOKEN", "0123456789abcdef")
	_, admin, _ := started(t, flags...)
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/debug/pprof/": 401} {
		if code, _ := get(t, admin+path, "wrong"); code != status {
			t.Errorf("%s: %d, want %d", path, code, status)
		}
	}
	for path, status := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/cmdline": 404} {
		if code, _ := get(t, admin+path, "0123456789abcdef"); code != status {
			t.Errorf("%s with the token: %d, want %d", path, code, status)
		}
	}
	_, admin, _ = started(t, append(flags, "--no-pprof")...)
	if code, _ := get(t, admin+"/debug/pprof/", "0123456789abcdef"); code != 404 {
		t.Errorf("profiles although they are off: %d", code)
	}
	host := strings.TrimPrefix(admin, "http://")
	if _, _, err := net.SplitHostPort(host); err != nil {
		t.Fatal(err)
	}
	// What answers there is no worker, and the command gets far enough to say so only with the token.
	if code, _, stderr := command(t, "", "worker", "status", "--admin-listen", host); code != exitFailed ||
		!strings.Contains(stderr, "is no worker") {
		t.Errorf("worker status: %d %s", code, stderr)
	}
	t.Setenv("RUNLENS_ADMIN_TOKEN", "")
	if code, _, stderr := command(t, "", "worker", "status", "--admin-listen", host); code != exitFailed ||
		!strings.Contains(stderr, "RUNLENS_ADMIN_TOKEN") {
		t.Errorf("worker status without the token: %d %s", code, stderr)
	}
}
