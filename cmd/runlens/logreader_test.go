package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A server answers and ends in order while nobody reads its log: the pipe is full, or its reader has gone.
func TestServerOutlivesTheReaderOfItsLog(t *testing.T) {
	flags := store(t)
	for name, disturb := range map[string]func(t *testing.T, reader *os.File){
		"stopped": fillPipe,
		"gone":    func(_ *testing.T, reader *os.File) { reader.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			must(t, syscall.Mkfifo(log, 0o600))
			reader, err := os.OpenFile(log, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			must(t, err)
			defer reader.Close()
			ready := filepath.Join(t.TempDir(), "ready")
			p := spawnCommand(t, nil, "/bin/sh", append([]string{"-c", `log=$1; shift; exec "$0" "$@" 2>"$log"`, os.Args[0], log,
				"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--ready-file", ready}, flags...)...)
			url := "http://" + waitForFile(t, p, ready) + "/api/v1/nothing" // each answer is logged
			disturb(t, reader)
			client := http.Client{Timeout: time.Minute}
			for range 5 {
				response, err := client.Get(url)
				must(t, err)
				response.Body.Close()
			}
			client.CloseIdleConnections()
			must(t, p.Process.Signal(syscall.SIGTERM))
			p.endsWithin(t, time.Minute)
			if code := p.ProcessState.ExitCode(); code != exitDone {
				t.Errorf("ended with %v", p.ProcessState)
			}
		})
	}
}

// fillPipe writes as much as a pipe holds.
func fillPipe(t *testing.T, reader *os.File) {
	t.Helper()
	fd, err := syscall.Open(reader.Name(), syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer syscall.Close(fd)
	for _, size := range []int{4096, 1} {
		for err == nil {
			_, err = syscall.Write(fd, make([]byte, size))
		}
		if !errors.Is(err, syscall.EAGAIN) {
			t.Fatal(err)
		}
		err = nil
	}
}
