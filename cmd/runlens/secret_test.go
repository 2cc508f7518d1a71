package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// secretFile writes a secret to a file of its own.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Contract 4.22: no command accepts a secret on its command line. It says so in one line, which does not repeat it.
func TestSecretsAreRefusedOnTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"cursor secret":         {[]string{"serve", "--cursor-secret", "hunter2hunter2hunter2"}, "--cursor-secret-file"},
		"cursor secret, joined": {[]string{"serve", "--cursor-secret=hunter2hunter2hunter2"}, "--cursor-secret-file"},
		"admin token":           {[]string{"serve", "--admin-token", "hunter2hunter2hunter2"}, "--admin-token-file"},
		"API key":               {[]string{"query", "--key", "hunter2"}, "--key-file"},
		"ClickHouse": {[]string{"serve", "--clickhouse-url", "clickhouse://u:hunter2@db:9000/d"},
			"RUNLENS_CLICKHOUSE_URL"},
		"ClickHouse, no user": {[]string{"keys", "list", "--org", "acme", "--clickhouse-url=https://:hunter2@db:8443/d"},
			"--clickhouse-password-file"},
		"ClickHouse, parameter": {[]string{"migrate", "up", "--clickhouse-url",
			"http://db:8123/d?username=u&password=hunter2"}, "--clickhouse-password-file"},
		"ClickHouse, broken URL": {[]string{"ingest", "--clickhouse-url", "clickhouse://u:hunter2%zz@db:9000/d", "-"},
			"--clickhouse-password-file"},
		"PostgreSQL":              {[]string{"worker", "--source", "postgres://u:hunter2@db/d"}, "RUNLENS_SOURCE"},
		"PostgreSQL, run":         {[]string{"worker", "run", "--source", "postgres://u:hunter2@db/d"}, "PGPASSFILE"},
		"PostgreSQL, words":       {[]string{"verify", "--source", "host=db user=u password=hunter2"}, "PGPASSFILE"},
		"PostgreSQL, quoted word": {[]string{"verify", "--source", "host=db password = 'hunter2'"}, "PGPASSFILE"},
		"PostgreSQL, encoded key": {[]string{"worker", "--source", "postgres://u@db/a?%70assword=hunter2"}, "PGPASSFILE"},
		"PostgreSQL, encoded capitals": {[]string{"verify", "--source", "postgres://u@db/a?x=1&SSL%50ass%77ord=hunter2"},
			"PGPASSFILE"},
		"registry": {[]string{"engine", "fetch", "--registry", "https://u:hunter2@npm/"},
			"RUNLENS_ENGINE_REGISTRY"},
		"Redis": {[]string{"serve", "--redis-url", "rediss://:hunter2@redis"}, "RUNLENS_REDIS_URL"},
		"API": {[]string{"query", "--url", "http://u:hunter2@api", "--metrics", "run_count"},
			"RUNLENS_API_KEY"},
		"not UTF-8":         {[]string{"worker", "--source", "postgres://u:hunter2\xff@db/d"}, "PGPASSFILE"},
		"not UTF-8, joined": {[]string{"worker", "--source=host=db password=hunter2\xff"}, "PGPASSFILE"},
		"an argument":       {[]string{"ingest", "http://u:hunter2@db/d"}, "a password must not be"},
		"of another flag":   {[]string{"serve", "--listen", "http://u:hunter2@db/d"}, "a password must not be"},
		"of no flag":        {[]string{"serve", "--clickhouse=http://u:hunter2@db/d"}, "a password must not be"},
		"a variable":        {[]string{"RUNLENS_CLICKHOUSE_PASSWORD=hunter2\xff", "serve"}, "is a variable"},
		"a late variable":   {[]string{"serve", "RUNLENS_CURSOR_SECRET=hunter2"}, "is a variable"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit code %d, want 2 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

// In the environment an address may have a password, and one without a password may be a flag. That no server is
// there is another failure, with another code.
func TestPasswordsElsewhereAreAccepted(t *testing.T) {
	t.Setenv("RUNLENS_CLICKHOUSE_URL", "http://u:hunter2@127.0.0.1:1/d")
	if code, _, stderr := command(t, "", "migrate", "status"); code != exitFailed || strings.Contains(stderr, "hunter2") {
		t.Errorf("variable: exit code %d\n%s", code, stderr)
	}
	for _, url := range []string{"http://u@127.0.0.1:1/d", "http://127.0.0.1:1/d", "http://u:@127.0.0.1:1/d"} {
		args := []string{
			"migrate",
			"status",
			"--clickhouse-url",
			url,
			"--clickhouse-password-file",
			secretFile(t, "hunter2\n"),
		}
		if code, _, stderr := command(t, "", args...); code != exitFailed || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit code %d\n%s", url, code, stderr)
		}
	}
	config, err := storeFlags{
		ClickhouseURL:          "clickhouse://u@db:9000/d?secure=true",
		ClickhousePasswordFile: secretFile(t, "p/@:%\n"),
	}.config(
		nil,
	)
	if err != nil || config.URL != "clickhouse://u:p%2F%40%3A%25@db:9000/d?secure=true" {
		t.Errorf("%s, %v", config.URL, err)
	}
}

// A flag that is added later must not take a secret either: a name that sounds like one is a file, and an address
// refuses passwords.
func TestNoFlagTakesASecret(t *testing.T) {
	parser, err := newParser(&cli{})
	must(t, err)
	secret := regexp.MustCompile(`secret|password|token|(^|-)key$|credential`)
	flags := 0
	if err := kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			flags++
			if secret.MatchString(f.Name) && f.PlaceHolder != "FILE" {
				t.Errorf("--%s takes a secret", f.Name)
			}
			if (f.PlaceHolder == "URL" || strings.Contains(f.Name, "url")) && passwordPlaces[f.Name] == "" {
				t.Errorf("--%s accepts a password", f.Name)
			}
		}
		return next(nil)
	}); err != nil {
		t.Fatal(err)
	}
	if flags < 50 {
		t.Errorf("%d flags were checked", flags)
	}
}

// Secrets that cannot work are one clear line at the start.
func TestBadSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		flag, text, says string
	}{
		"short cursor secret":  {"--cursor-secret-file", "x", "16 bytes"},
		"short second one":     {"--cursor-secret-file", "0123456789abcdef\nx", "16 bytes"},
		"three cursor secrets": {"--cursor-secret-file", strings.Repeat("0123456789abcdef\n", 3), "two at most"},
		"empty":                {"--cursor-secret-file", " \n", "is empty"},
		"short admin token":    {"--admin-token-file", "x", "16 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", c.flag,
				secretFile(t, c.text))
			if code != exitUsage || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want 2 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

// Servers whose files have the same two secrets in different order accept each other's cursors, which is what
// rolling a new secret out comes through.
func TestTwoCursorSecrets(t *testing.T) {
	const first, second = "the first secret of all", "the second secret of all"
	flags := store(t)
	_, key := createKey(t, flags)
	ingestTwoDays(t, flags)
	cursors := map[string]string{}
	bases := map[string]string{}
	files := map[string]string{
		"old":             first,
		"both, old signs": first + "\n" + second,
		"both, new signs": second + "\n" + first + "\n",
		"new":             second,
	}
	for name, text := range files {
		bases[name], _, _ = started(
			t,
			append([]string{"--cursor-secret-file", secretFile(t, text), "--maintenance-share", "0"}, flags...)...)
		_, body := post(t, bases[name], key, firstDay+"}")
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Cursor == "" {
			t.Fatal(err, body)
		}
		cursors[name] = page.Cursor
	}
	for _, c := range []struct {
		from, to string
		status   int
	}{
		{"old", "both, old signs", 200}, {"both, old signs", "old", 200}, {"both, old signs", "both, new signs", 200},
		{"both, new signs", "both, old signs", 200}, {"both, new signs", "new", 200}, {"new", "both, new signs", 200},
		{"old", "both, new signs", 200}, {"old", "new", 400}, {"new", "old", 400},
	} {
		if status, body := post(t, bases[c.to], key, firstDay+`,"cursor":"`+cursors[c.from]+`"}`); status != c.status {
			t.Errorf("a cursor of %q to %q: %d %s", c.from, c.to, status, body)
		}
	}
}
