package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A client connects whatever is wrong behind: it is told by the tools that it calls, and goes on when all is well.
func TestMCPWithoutAServer(t *testing.T) {
	asker(t)
	target, err := url.Parse(os.Getenv("RUNLENS_URL"))
	must(t, err)
	address := freeAddress(t)
	t.Setenv("RUNLENS_URL", "http://"+address)
	in, input := io.Pipe()
	output, out := io.Pipe()
	var stderr logtest.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"mcp"}, streams{in, out, &stderr})
		in.Close()
		out.Close()
	}()
	lines := bufio.NewReader(output)
	answers := func(request string, want ...string) {
		t.Helper()
		fmt.Fprintln(input, request)
		line, err := lines.ReadString('\n')
		for err == nil && strings.Contains(line, `"method":"notifications/tools/list_changed"`) {
			line, err = lines.ReadString('\n')
		}
		for _, text := range want {
			if err != nil || !strings.Contains(line, text) {
				t.Errorf("%s is answered with %s, not with %s: %v", request, line, text, err)
			}
		}
	}
	call := func(id int, tool, arguments string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
			id, tool, arguments)
	}
	const question = `{"model":"agent_runs","metrics":["run_count"],` +
		`"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`
	const list = `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`
	answers(initialize, `{"jsonrpc":"2.0","id":1,"result":{`)
	fmt.Fprintln(input, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answers(list, `"name":"catalog"`, `"name":"query"`)
	answers(call(2, "catalog", "{}"), `"isError":true`, "no server answers at http://"+address, "runlens serve")
	answers(call(3, "query", question), `"isError":true`, "no server answers at http://"+address)

	listener, err := net.Listen("tcp", address)
	must(t, err)
	server := &http.Server{Handler: httputil.NewSingleHostReverseProxy(target)}
	go server.Serve(listener)
	defer server.Close()
	answers(list, `"enum":["agent_runs","agent_user_activity"]`)
	answers(call(4, "query", question), `"rows":[[300]]`)
	answers(call(5, "catalog", "{}"), `"run_success_rate"`)
	input.Close()
	go io.Copy(io.Discard, output) // the notification may come last
	if code := <-ended; code != exitDone || strings.Count(stderr.String(), "runlens serve") != 1 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
