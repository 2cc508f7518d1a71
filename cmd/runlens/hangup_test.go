package main

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The end of a terminal or a session ends a server in order, with its requests, and an ingest with its summary. One
// that was started by nohup goes on.
func TestAHangup(t *testing.T) {
	flags := store(t)
	for name, start := range map[string]string{"plain": `exec "$0" "$@"`, "nohup": `trap "" HUP; exec "$0" "$@"`} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			p := spawnCommand(t, nil, "/bin/sh", append([]string{"-c", start, os.Args[0], "serve",
				"--listen", "127.0.0.1:0", "--admin-listen", "off", "--ready-file", ready}, flags...)...)
			url := "http://" + waitForFile(t, p, ready) + "/api/v1/nothing"
			if err := p.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if name == "nohup" {
				response, err := http.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				http.DefaultClient.CloseIdleConnections()
				if err := p.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			p.endsWithin(t, time.Minute)
			if p.ProcessState.ExitCode() != exitDone {
				t.Errorf("ended with %v: %s", p.ProcessState, p.err.String())
			}
		})
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	if _, err := out.WriteString(agentsNDJSON); err != nil {
		t.Fatal(err)
	}
	p := spawnCommand(t, in, os.Args[0], append([]string{"ingest", "--json", "-"}, flags...)...)
	drained(t, p, in)
	interrupted(t, "ingest", p, syscall.SIGHUP, stored{Agents: 1})
}
