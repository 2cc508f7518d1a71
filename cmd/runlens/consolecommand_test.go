package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The command prints the address that opens the console, and ends well with a signal's context.
func consoleCommand(t *testing.T, o office) {
	o.desk(t, "console", "2026-01-01 a@x.example COMPLETED")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"console", "--listen", "127.0.0.1:0"}, streams{strings.NewReader(""), out, io.Discard})
		out.Close()
	}()
	address, err := bufio.NewReader(printed).ReadString('\n')
	must(t, err)
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} { // it works once
		response, err := browser.Get(strings.TrimSpace(address))
		if err != nil || response.StatusCode != want {
			t.Fatalf("%s: %v %v, want %d", address, response, err, want)
		}
		response.Body.Close()
	}
	browser.CloseIdleConnections()
	stop()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for says, args := range map[string][]string{
		"a loopback address": {"--listen", "0.0.0.0:0"},
		"name it with":       {"--export", "x.html"},
		"no such file":       {"--dashboard", "nothing.yaml"},
	} {
		if code, _, stderr := command(t, "", append([]string{"console"}, args...)...); code == exitDone ||
			!strings.Contains(stderr, says) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
}
