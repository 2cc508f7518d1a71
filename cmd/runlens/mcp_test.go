package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asker is a server with 300 runs of 300 people in January, a key in the environment and a saved question.
func asker(t *testing.T) (questions string) {
	t.Helper()
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags)
	var lines strings.Builder
	for n := range 300 {
		fmt.Fprintf(&lines, `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10",`+
			`"status":"COMPLETED","initiator_identifier":"%s.%03d","created_at":"2026-01-05T09:30:00Z",`+
			`"updated_at":"2026-01-31T09:31:00Z"}`+"\n", n, strings.Repeat("x", 300), n)
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	config := t.TempDir()
	for name, value := range map[string]string{"RUNLENS_API_KEY": key, "RUNLENS_URL": base, "XDG_CONFIG_HOME": config} {
		t.Setenv(name, value)
	}
	code, _, stderr := command(t, "", "query", "--metrics", "run_count", "--dimensions", "day", "--start", "2026-01-01",
		"--end", "2026-01-31", "--save", "weekly")
	if code != 0 {
		t.Fatal(stderr)
	}
	return filepath.Join(config, "runlens", "queries")
}

// mcpClient runs the program of testdata/mcp.
func mcpClient(t *testing.T, env ...string) {
	t.Helper()
	modules, err := filepath.Abs("../../deploy/generators/node_modules")
	must(t, err)
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("testdata/mcp")))
	must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, "node", "client.mjs")
	client.Dir, client.Env = dir, append(os.Environ(), env...)
	var complaints strings.Builder // Node also warns of what is in the environment
	client.Stderr = &complaints
	if out, err := client.Output(); err != nil || string(out) != "done\n" {
		t.Errorf("%v (are the packages of `make generators` there?)\n%s%s", err, out, complaints.String())
	}
}

func TestMCPOverStreams(t *testing.T) {
	questions := asker(t)
	mcpClient(t, "COMMAND="+os.Args[0], commandVariable+"=1", "QUESTIONS="+questions)

	// It ends well with its input, and with a signal. Nothing but messages is on standard output.
	for name, end := range map[string]func(*exec.Cmd, io.Closer){
		"end of input": func(_ *exec.Cmd, input io.Closer) { input.Close() },
		"signal":       func(p *exec.Cmd, _ io.Closer) { p.Process.Signal(syscall.SIGTERM) },
	} {
		p := exec.Command(os.Args[0], "mcp")
		p.Env = append(os.Environ(), commandVariable+"=1")
		input, err := p.StdinPipe()
		must(t, err)
		out, err := p.StdoutPipe()
		must(t, err)
		must(t, p.Start())
		fmt.Fprintln(input, initialize)
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,"result":{`) {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		end(p, input)
		rest, _ := io.ReadAll(lines)
		if err := p.Wait(); err != nil || len(rest) > 0 {
			t.Errorf("%s: %v, and %q", name, err, rest)
		}
	}
}

// All requests that came are answered, also where the input has ended before that; those with the id of another one
// that is open get one answer. Where nobody reads the answers it ends all the same.
func TestMCPAnswersWhatCame(t *testing.T) {
	asker(t)
	const calls = 20
	input := initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for id := range calls {
		input += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"query","arguments":`+
			`{"model":"agent_runs","metrics":["run_count"],`+
			`"range":{"start":"2026-01-%02d","end":"2026-01-31","timezone":"UTC"}}}}`+"\n",
			2+min(id, calls-2), 1+id)
	}
	code, out, stderr := command(t, input, "mcp")
	if n := strings.Count(out, `"structuredContent":`); code != 0 || n < calls-1 || strings.Contains(out, `"isError"`) {
		t.Errorf("%d: %d answers to %d calls: %s%s", code, n, calls, out, stderr)
	}

	for _, typed := range []string{"help\n", initialize + "\n" + `{"jsonrpc":"2.0",`} {
		code, _, stderr := command(t, typed, "mcp")
		if code != exitFailed || !strings.Contains(stderr, "no message of the Model Context Protocol") {
			t.Errorf("%q: %d %s", typed, code, stderr)
		}
	}

	reader, writer, err := os.Pipe()
	must(t, err)
	defer writer.Close()
	reader.Close()
	ended := run(t.Context(), []string{"mcp"}, streams{strings.NewReader(input), writer, io.Discard})
	if ended != exitFailed {
		t.Errorf("exit code %d where nobody reads", ended)
	}
}

// A signal ends it although the server has no answer.
func TestMCPIsInterrupted(t *testing.T) {
	asker(t)
	target, err := url.Parse(os.Getenv("RUNLENS_URL"))
	must(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	asked := make(chan bool, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // the catalog
			forward.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		asked <- true
		<-r.Context().Done()
	}))
	defer silent.Close()
	t.Setenv("RUNLENS_URL", silent.URL)
	in, input, err := os.Pipe()
	must(t, err)
	defer in.Close()
	defer input.Close()
	p := spawnCommand(t, in, os.Args[0], "mcp")
	fmt.Fprintln(input, initialize+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query","arguments":{"model":"agent_runs",`+
		`"metrics":["run_count"],"range":{"last":"1d","timezone":"UTC"}}}}`)
	<-asked
	p.Process.Signal(syscall.SIGTERM)
	if p.endsWithin(t, time.Minute); p.ProcessState.ExitCode() != exitFailed ||
		!strings.Contains(p.err.String(), "what was asked had no answer") {
		t.Errorf("ended with %v: %s", p.ProcessState, p.err.String())
	}
}

// initialize is the first message of a client.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

func TestMCPOverHTTP(t *testing.T) {
	questions := asker(t)
	ctx, stop := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"mcp", "--listen", "127.0.0.1:0"}, streams{strings.NewReader(""), io.Discard, stderr})
		stderr.Close()
	}()
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving MCP at ")
	if err != nil || !ok {
		t.Fatal(line, err)
	}
	go io.Copy(io.Discard, lines)
	mcpClient(t, "ADDRESS="+address, "QUESTIONS="+questions)

	// Other users of the machine, and pages in a browser, are kept out.
	key := "Bearer " + os.Getenv("RUNLENS_API_KEY")
	for name, c := range map[string]struct {
		host, authorization, origin string
		status                      int
	}{
		"no key":         {"", "", "", 401},
		"wrong key":      {"", key + "x", "", 401},
		"another origin": {"", key, "http://example.com", 403},
		"another host":   {"example.com", key, "", 403},
		"all is well":    {"", key, "", 200},
	} {
		request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(initialize))
		must(t, err)
		request.Host = c.host
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range map[string]string{"Authorization": c.authorization, "Origin": c.origin} {
			if value != "" {
				request.Header.Set(header, value)
			}
		}
		if status, answer := send(t, request); status != c.status {
			t.Errorf("%s: %d, want %d: %s", name, status, c.status, answer)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What cannot work ends at once, with a line that says what to do.
func TestMCPRefuses(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("RUNLENS_API_KEY", "")
	t.Setenv("RUNLENS_URL", "http://"+freeAddress(t))
	if code, out, stderr := command(t, "", "mcp"); code != exitUsage || out != "" ||
		!strings.Contains(stderr, "runlens login") {
		t.Errorf("without a key: %d %s%s", code, out, stderr)
	}
	t.Setenv("RUNLENS_API_KEY", "rl_x")
	for address, says := range map[string]string{"0.0.0.0:0": "loopback", ":0": "loopback", "192.0.2.1:0": "loopback",
		"example.com:0": "loopback", "[::]:0": "loopback", "127.0.0.1": "is no address"} {
		if code, _, stderr := command(t, "", "mcp", "--listen", address); code != exitUsage ||
			!strings.Contains(stderr, says) {
			t.Errorf("--listen %s: %d %s", address, code, stderr)
		}
	}
}
