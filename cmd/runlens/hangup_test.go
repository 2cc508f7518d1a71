package main

import (
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The end of a terminal or a session ends a server in order, with its requests, and an ingest with its summary. One
// that was started by nohup goes on.
func TestAHangup(t *testing.T) {
	// Where these tests are started by nohup themselves, their children would ignore it too. What a process catches, its
	// children do not ignore.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	flags := store(t)
	for name, start := range map[string]string{"plain": `exec "$0" "$@"`, "nohup": `trap "" HUP; exec "$0" "$@"`} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			p := spawnCommand(t, nil, "/bin/sh", append([]string{"-c", start, os.Args[0], "serve",
				"--listen", "127.0.0.1:0", "--admin-listen", "off", "--ready-file", ready}, flags...)...)
			url := "http://" + waitForFile(t, p, ready) + "/api/v1/nothing"
			must(t, p.Process.Signal(syscall.SIGHUP))
			if name == "nohup" {
				response, err := http.Get(url)
				must(t, err)
				response.Body.Close()
				http.DefaultClient.CloseIdleConnections()
				must(t, p.Process.Signal(syscall.SIGTERM))
			}
			p.endsWithin(t, time.Minute)
			if p.ProcessState.ExitCode() != exitDone {
				t.Errorf("ended with %v: %s", p.ProcessState, p.err.String())
			}
		})
	}
	in, out, err := os.Pipe()
	must(t, err)
	defer in.Close()
	defer out.Close()
	if _, err := out.WriteString(agentsNDJSON); err != nil {
		t.Fatal(err)
	}
	p := spawnCommand(t, in, os.Args[0], append([]string{"ingest", "--json", "-"}, flags...)...)
	drained(t, p, in)
	interrupted(t, "ingest", p, syscall.SIGHUP, stored{Agents: 1})
}
