package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/creack/pty"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// hostileNames are those of agents, people and keys of one tenant: what a terminal obeys, what a shell or a spreadsheet
// runs, what hides or turns text, and what ends a line of a log or of a table.
var hostileNames = []string{
	"\x1b]0;siege\a", "\x1b[201~siege\rtouch siege\r", "\u009bsiege", "\x7fsiege", "\u202esiege\u2066",
	"siege\x00\x01\x02",
	"=1+1;=1+1", "x\t=1+1", "_x0041__x0041_", "<script>alert(1)</script>", "siege\nlevel=ERROR msg=siege",
	"`id`$(id)'\"\\",
	"\ufeff\u2028\u2029", "{{.}}%s%n\u200b", strings.Repeat("\U0001f3f4\u200d\u2620\ufe0f", 125), " siege ",
}

// hostileOrganization is the tenant with hostile names, the last one.
var hostileOrganization = smallOrganizations[len(smallOrganizations)-1]

// obeyed are the sequences of hostileNames that change a terminal, or what is seen on it.
var obeyed = []string{"\x1b]0;siege", "\x1b[201~", "\u009bsiege", "\x7fsiege", "\u202esiege", "\u2066"}

const hostileEvery = 200 * time.Millisecond

// sendHostile sends hostile names wherever a request has a place for one: without a key in its line and its fields, and
// with one in its filters.
func (g *siege) sendHostile(ctx, end context.Context) {
	address := g.target.server.Address
	for n := 0; harness.Pause(end, hostileEvery); n++ {
		name := hostileNames[n%len(hostileNames)]
		a, err := g.attackers[n%len(g.attackers)].query(ctx, hostileQuestion(name, n).body())
		if err != nil {
			g.attacks.add("hostile filters: no answer")
		} else {
			g.attacks.add("hostile filters")
			g.judge("hostile filters", a)
		}
		const kind = "hostile request lines and fields"
		text := []string{
			"GET /" + name + " HTTP/1.1\r\nHost: soak\r\n\r\n",
			name + " / HTTP/1.1\r\nHost: soak\r\n\r\n",
			"GET " + catalogPath + " HTTP/1.1\r\nHost: soak\r\nx-request-id: " + name + "\r\n\r\n",
			"GET " + catalogPath + " HTTP/1.1\r\nHost: soak\r\nUser-Agent: " + name + "\r\nAuthorization: Bearer rl_" +
				name + "\r\n\r\n",
		}[n/len(hostileNames)%4]
		replies, err := exchange(ctx, dialTCP(address), attack{method: http.MethodGet, segments: []string{text}})
		if err != nil {
			g.attacks.add(kind + ": no connection")
			continue
		}
		g.attacks.add(kind)
		for _, a := range replies {
			g.judgeKeyless(kind, a)
		}
	}
}

// hostileQuestion has a name, or its beginning, in a legal filter.
func hostileQuestion(name string, n int) question {
	characters := []rune(name)
	q := smallQuestion
	q.Filters = []filter{{Member: "user_identifier", Op: "in",
		Values: []string{string(characters[:min(len(characters), maxLength)]), fmt.Sprint(n)}}}
	return q
}

const (
	showEvery    = 15 * time.Second
	showPatience = time.Minute
)

// showHostileNames shows the names of keys and of agents on a terminal.
func (g *siege) showHostileNames(ctx, end context.Context) {
	for _, name := range hostileNames {
		if end.Err() != nil {
			return
		}
		if g.target.product.Command(end, "keys", "create", "--org", hostileOrganization, "--name", name).Run() != nil {
			g.attacks.add("hostile names of keys: refused") // an answer as good as any
		} else {
			g.attacks.add("hostile names of keys")
		}
	}
	formats := []string{"table", "csv", "json", "ndjson", "markdown", "plot"}
	for n, on := 0, true; on; n, on = n+1, harness.Pause(end, showEvery) {
		g.show(ctx, "keys list", func(ctx context.Context) *exec.Cmd {
			return g.target.product.Command(ctx, "keys", "list", "--org", hostileOrganization)
		})
		format := formats[n%len(formats)]
		g.show(ctx, "query --output "+format, func(ctx context.Context) *exec.Cmd {
			c := g.tenants[len(g.tenants)-1]
			command := exec.CommandContext(ctx, g.Runlens, "query", "--metrics", "run_count", "--dimensions", "agent_id",
				"--last", "30d", "--output", format)
			command.Env = append(os.Environ(), "RUNLENS_URL="+c.base, "RUNLENS_API_KEY="+c.key)
			return command
		})
	}
}

// show runs a command on a terminal of its own and looks for what a terminal obeys.
func (g *siege) show(ctx context.Context, name string, of func(context.Context) *exec.Cmd) {
	ctx, cancel := context.WithTimeout(ctx, showPatience)
	defer cancel()
	command := of(ctx)
	terminal, err := pty.Start(command)
	if err != nil {
		g.escapes.add("%s: no terminal: %v", name, err)
		return
	}
	defer terminal.Close()
	text, _ := io.ReadAll(terminal) // its end is an error on Linux
	if err := command.Wait(); err != nil {
		g.attacks.add("hostile names on a terminal: " + name + " failed")
	} else {
		g.attacks.add("hostile names on a terminal: " + name)
	}
	for _, sequence := range obeyed {
		if strings.Contains(string(text), sequence) {
			g.escapes.add("%s: %q", name, sequence)
		}
	}
}

// readLog returns how many lines of a log hold control characters.
func readLog(file string) *examples {
	var seen examples
	log, err := os.Open(file)
	if err != nil {
		seen.add("%v", err)
		return &seen
	}
	defer log.Close()
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		control := func(r rune) bool { return r < ' ' || r == 0x7f }
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), control) {
			seen.add("%s: %.200q", filepath.Base(file), line)
		}
		if err != nil {
			return &seen
		}
	}
}
