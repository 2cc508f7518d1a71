package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// diagnosed is what runlens doctor --json prints.
type diagnosed struct {
	Result   finding.Result
	Findings []finding.Finding
}

func diagnose(t *testing.T, code int, args ...string) (d diagnosed) {
	t.Helper()
	got, out, stderr := command(t, "", append([]string{"doctor", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s %s", err, out, stderr)
	}
	if got != code {
		t.Errorf("exit code %d, want %d: %+v", got, code, d)
	}
	return d
}

// told returns the findings of a check as text.
func (d diagnosed) told(check string) string {
	var lines []string
	for _, f := range d.Findings {
		if f.Check == check {
			lines = append(lines, string(f.Result)+": "+f.Says+"\n"+f.Do)
		}
	}
	return strings.Join(lines, "\n")
}

func TestDoctor(t *testing.T) {
	flags := store(t)
	d := diagnose(t, exitDone, flags...)
	for _, check := range []string{"version", "topology", "grants", "clock", "damaged parts", "settings", "parameters",
		"migrations", "tables", "mutations", "open files", "log tables"} {
		if !strings.HasPrefix(d.told(check), "ok: ") {
			t.Errorf("%s: %s", check, d.told(check))
		}
	}
	must(t, joined(t, flags).Exec(t.Context(), "DROP TABLE count_inserted_runs SYNC"))
	if d := diagnose(t, exitFailed, flags...); d.Result != finding.Problem ||
		!strings.Contains(d.told("tables"), "count_inserted_runs is missing") {
		t.Errorf("found %+v", d)
	}
	code, out, _ := command(t, "", append([]string{"doctor"}, flags...)...)
	if code != exitFailed || !strings.Contains(out, "problem    tables               count_inserted_runs is missing\n") ||
		!strings.Contains(out, "1 problem, ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestDoctorCannotConnect(t *testing.T) {
	d := diagnose(t, exitFailed, "--clickhouse-url", "http://127.0.0.1:1/x")
	if told := d.told("connection"); !strings.HasPrefix(told, "problem: cannot open the store") {
		t.Errorf("found %+v", d)
	}
	for _, args := range [][]string{{"--mapping", "x"}, {"--source", "nowhere"}, {"--clickhouse-url", "ftp://x"}} {
		if code, _, _ := command(t, "", append([]string{"doctor"}, args...)...); args[0] != "--clickhouse-url" &&
			code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// A process that may have few files open says how many connections it takes.
func TestDoctorWithFewFiles(t *testing.T) {
	p := exec.Command("sh", "-c", "ulimit -n 256 && exec \"$0\" doctor --json --clickhouse-url http://127.0.0.1:1/x",
		os.Args[0])
	p.Env = append(os.Environ(), commandVariable+"=1")
	out, err := p.Output()
	if p.ProcessState.ExitCode() != exitFailed { // nothing listens there
		t.Errorf("ends with %v", err)
	}
	var d diagnosed
	must(t, json.Unmarshal(out, &d))
	want := "warning: a process of this user may have 256 files open, so that serve takes 64 connections, not 4096\nulimit"
	if told := d.told("open files"); !strings.HasPrefix(told, want) {
		t.Errorf("found %s", told)
	}
}

func TestDoctorOfASource(t *testing.T) {
	flags := store(t)
	url, conn := operational(t, 3)
	d := diagnose(t, exitDone, append([]string{"--source", url}, flags...)...)
	for _, check := range []string{"source version", "source mapping", "source rights", "source standby",
		"source timeouts", "source clock", "source transactions"} {
		if !strings.HasPrefix(d.told(check), "ok: ") {
			t.Errorf("%s: %s", check, d.told(check))
		}
	}
	if told := d.told("source index"); told != "" {
		t.Errorf("an index is missed: %s", told)
	}
	execute(t, conn, `CREATE ROLE "Reader" LOGIN; DROP INDEX runs_changes`)
	execute(t, conn, `ALTER ROLE "Reader" SET statement_timeout = '5min'`)
	reader := strings.Replace(url, "://runlens@", "://Reader@", 1)
	if reader == url {
		t.Skip("the server's superuser has another name")
	}
	d = diagnose(t, exitFailed, append([]string{"--source", reader}, flags...)...)
	if told := d.told("source mapping"); !strings.HasPrefix(told, "problem: the role may not read") ||
		!strings.Contains(told, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO "Reader"`) {
		t.Errorf("rights: %s", told)
	}
	execute(t, conn, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO "Reader"`)
	execute(t, conn, "BEGIN; INSERT INTO agents (organization_id, agent_id, name) VALUES ('a', gen_random_uuid(), 'x');"+
		" PREPARE TRANSACTION 'left'")
	d = diagnose(t, exitDone, append([]string{"--source", reader}, flags...)...)
	for check, want := range map[string]string{
		"source mapping": "ok: ",
		"source rights":  "GRANT pg_read_all_stats TO \"Reader\"",
		"source index":   "CREATE INDEX CONCURRENTLY ON \"public\".\"runs\" (updated_at, run_id)",
		"source timeouts": "statement_timeout is 5m0s, and a full comparison reads whole tables in one transaction\n" +
			"ALTER ROLE \"Reader\" SET statement_timeout = 0",
		"source transactions": "ok: 1 prepared transactions wait for their commit",
	} {
		if !strings.Contains(d.told(check), want) {
			t.Errorf("%s: %q, want %q", check, d.told(check), want)
		}
	}
	execute(t, conn, "ROLLBACK PREPARED 'left'")
}

func TestDoctorOfAStandby(t *testing.T) {
	server := postgrestest.New(t)
	standby, err := server.Standby(t.Context())
	must(t, err)
	d := diagnose(t, exitFailed, append([]string{"--source", standby.URL()}, store(t)...)...)
	if told := d.told("source standby"); !strings.Contains(told, "the source is a standby, ") {
		t.Errorf("found %q", told)
	}
	if told := d.told("source mapping"); !strings.HasPrefix(told, "problem: ") { // it has no tables
		t.Errorf("found %q", told)
	}
}

// A server and a worker log what is wrong when they start, once.
func TestStartsLogWhatIsWrong(t *testing.T) {
	flags := store(t)
	serve := func() string {
		ready := filepath.Join(t.TempDir(), "ready")
		p := spawn(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready, "--admin-listen", "off",
			"--maintenance-share", "0"}, flags...)...)
		waitForFile(t, p, ready)
		p.Process.Kill()
		<-p.ended
		return p.err.String()
	}
	if log := serve(); strings.Contains(log, `"check":`) {
		t.Errorf("nothing is wrong: %s", log)
	}
	ingestTwoDays(t, flags)
	var path string
	const part = "SELECT any(path) FROM system.parts WHERE database = currentDatabase() AND table = 'runs' AND active"
	must(t, joined(t, flags).QueryRow(t.Context(), part).Scan(&path))
	must(t, os.Truncate(filepath.Join(path, "columns.txt"), 0))
	killEngine(t, flags[1])
	if log := serve(); strings.Count(log, `"check":"damaged parts"`) != 1 || strings.Count(log, `"check":`) != 1 {
		t.Errorf("not logged once: %s", log)
	}
	url, _ := operational(t, 1)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	defer log.Close()
	p := exec.Command(os.Args[0], append([]string{"worker", "--source", url, "--admin-listen", "off"}, flags...)...)
	p.Env, p.Stderr = append(os.Environ(), commandVariable+"=1"), log
	must(t, p.Start())
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	var text []byte
	if !harness.Poll(t.Context(), time.Minute, 20*time.Millisecond, func() bool {
		var err error
		if text, err = os.ReadFile(log.Name()); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"check":"damaged parts"`)
	}) {
		t.Fatalf("the worker does not log it: %s", text)
	}
}
