package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/output"
)

// hostileText is a name that changes what a terminal shows, and would be a line of its own.
const hostileText = "x\x1b]0;title\x07\x1b[31m\x7f\u009b31m\u202e\u2066\u2028\u200b\r\n" +
	"threshold: FORGED\nrunlens: FORGED\n!"

// onTerminal is what a command shows on a terminal of its own.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), commandVariable+"=1", "NO_COLOR=1", "TERM=xterm")
	terminal, err := pty.StartWithSize(p, &pty.Winsize{Rows: 50, Cols: 250})
	must(t, err)
	defer terminal.Close()
	shown, _ := io.ReadAll(terminal) // ends with an error when the process does
	p.Wait()                         // commands may fail
	return strings.ReplaceAll(string(shown), "\r\n", "\n")
}

// throughHostile is the address of a server that passes on what the real one answers, with hostile texts in it.
func throughHostile(t *testing.T, base string) string {
	t.Helper()
	to, err := url.Parse(base)
	must(t, err)
	quoted, err := json.Marshal(hostileText)
	must(t, err)
	inside := string(quoted[1 : len(quoted)-1])
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		text := strings.NewReplacer(`"message":"`, `"message":"`+inside, `"code":"u`, `"code":"`+inside+`u`,
			`"description":"`, `"description":"`+inside, `"catalogVersion":"`, `"catalogVersion":"`+inside,
			`"warnings":[]`, `"warnings":[{"code":"x","message":"`+inside+`"}]`,
			`"name":"run_count","type"`, `"name":"`+inside+`","type":"integer"},{"name":"run_count","type"`,
			`"param":"`, `"param":"`+inside, `"requestId":"`, `"requestId":"`+inside).Replace(string(content))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// Texts of others reach a terminal as text, whatever command shows them in whatever format, and are no lines by
// themselves where a log or a mail keeps them.
func queryHostile(t *testing.T, o office) {
	name, err := json.Marshal(hostileText)
	must(t, err)
	run := func(n string, identifier, display string) string {
		return `{"record":"run","organization_id":"hostile","run_id":"0b7e4d2c-9f3a-4c61-8a55-00000000000` + n +
			`","agent_id":"` + agentOfDesk + `","status":"COMPLETED","initiator_identifier":` + identifier +
			`,"initiator_name":` + display + `,"initiator_type":"internal","created_at":"2026-01-01T09:30:00Z",` +
			`"updated_at":"2026-06-01T09:31:00Z"}`
	}
	d := o.desk(t, "hostile", `{"record":"agent","organization_id":"hostile","agent_id":"`+agentOfDesk+`","name":`+
		string(name)+`,"slug":"x","updated_at":"2026-01-01T00:00:00Z"}`, run("1", string(name), string(name)),
		run("2", `"b@x.example"`, string(name)))
	if _, out, stderr := d.query(january + "--dimensions user_identifier --output ndjson"); !strings.Contains(out,
		`\u001b]0;title`) {
		t.Fatalf("the store has no hostile name: %s%s", out, stderr)
	}
	// The server records within seconds that the key was used, which a list shows from then on.
	conn := joined(t, d.flags)
	const uses = "SELECT count() FROM api_key_uses WHERE key_id IN" +
		" (SELECT key_id FROM api_keys WHERE organization_id = $1)"
	if !harness.Poll(t.Context(), time.Minute, 20*time.Millisecond, func() bool {
		return counted(t, conn, uses, "hostile") > 0
	}) {
		t.Fatal("the use of the key is not recorded")
	}
	createKey(t, d.flags, "--org", "hostile", "--name", hostileText)
	home := t.TempDir()
	rejected := filepath.Join(home, "bad\x1b[31m\n.ndjson")
	record := `{"record":"run","organization_id":"hostile",` + string(name) + `:1}`
	must(t, os.WriteFile(rejected, []byte(record), 0o600))
	january := strings.Fields("query " + january)
	ask := func(more ...string) []string { return append(append([]string{}, january...), more...) }
	stored := func(args ...string) []string { return append(args, d.flags...) }
	commands := map[string][]string{
		"thresholds": ask("--dimensions", "user_identifier", "--fail-if", "run_count > 0"),
		"vertical":   ask("--dimensions", "user_identifier", "--vertical"),
		"a refusal":  {"query", "--metrics", "run_cont", "--today"},
		"a filter":   ask("--filter", "user_identifier="+hostileText, "--limit", "900"),
		"a day":      ask("--filter", "day="+hostileText),
		"a terminal": ask("--dimensions", "user_identifier", "--output", "csv", "-q", "-o", "/dev/stdout"),
		"rejects":    stored("ingest", rejected),
		"to stdout":  stored("ingest", rejected, "--rejects", "/dev/stdout"),
		"catalog":    {"catalog"}, "catalog as JSON": {"catalog", "--output", "json"},
		"keys":         stored("keys", "list", "--org", "hostile"),
		"keys as JSON": stored("keys", "list", "--org", "hostile", "--output", "json"),
		"audit":        stored("audit", "--org", "hostile"), "audit as JSON": stored("audit", "--output", "json"),
		"usage": stored("usage", "--by", "question"), "usage as CSV": stored("usage", "--by", "shape", "--output", "csv"),
		"explain": stored(append([]string{"explain", "--org", "hostile", "--filter", "user_identifier=" +
			strconv.Quote(hostileText)}, january[1:]...)...),
		"completion":  {"__complete", "query", "--filter", "user_identifier="},
		"members":     {"__complete", "query", "--metrics", ""},
		"wrong usage": {"query", "--metrics", hostileText, "--nothing"}, "no file": {"query", "--body", hostileText},
		"a profile": {"login", "--profile", hostileText, "--url", "http://\x1b"},
	}
	for _, format := range output.Formats {
		if !output.Binary(format) {
			commands[format] = ask("--dimensions", "agent_id,user_identifier", "--output", format)
		}
	}
	for _, base := range []string{d.base, throughHostile(t, d.base)} {
		t.Setenv("RUNLENS_URL", base)
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		for what, args := range commands {
			if base != d.base && slices.Contains(args, d.flags[0]) {
				continue // it asks no server
			}
			shown := onTerminal(t, args...)
			if shown == "" {
				t.Errorf("%s shows nothing", what)
			}
			obeyed := func(r rune) bool { return output.Hidden(r) && r != '\n' && r != '\t' }
			if at := strings.IndexFunc(shown, obeyed); at >= 0 {
				t.Errorf("%s: the terminal gets %.100q", what, shown[max(at-50, 0):])
			}
			if slices.Contains(args, "/dev/stdout") {
				continue // it would be the test's
			}
			code, out, stderr := command(t, "", args...)
			if strings.Contains(stderr, "\nthreshold: FORGED") || strings.Contains(stderr, "\nrunlens: FORGED") ||
				strings.Contains(stderr, "\x1b") {
				t.Errorf("%s, exit code %d: a line is forged: %q", what, code, stderr)
			}
			if what == "json" || what == "ndjson" || strings.HasSuffix(what, "as JSON") {
				if a, b := values(t, out), values(t, shown); a == "" || !strings.HasPrefix(b, a) && what != "audit as JSON" {
					t.Errorf("%s: a terminal has other values: %s and %s", what, a, b)
				}
			} else if what != "csv" && strings.Contains(out, "\nthreshold: FORGED") {
				t.Errorf("%s: a line is forged: %q", what, out)
			}
		}
	}
	if _, out, _ := command(t, "", commands["csv"]...); !strings.Contains(out, "\x1b]0;title") {
		t.Errorf("a file has other values than the store: %q", out)
	}
}

// values are the JSON values of a text, as far as it has any, without what differs from answer to answer.
func values(t *testing.T, text string) string {
	t.Helper()
	var all bytes.Buffer
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var value map[string]any
		if decoder.Decode(&value) != nil {
			return all.String()
		}
		delete(value, "queryId")
		delete(value, "asOf")
		one, err := json.Marshal(value)
		must(t, err)
		all.Write(append(one, '\n'))
	}
}
