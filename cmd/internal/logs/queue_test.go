package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/logs"
)

// A gate is a writer that takes lines while it is open.
type gate struct {
	open  chan struct{}
	fails error
	got   bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	if err := g.fails; err != nil {
		g.fails = nil
		return 0, err
	}
	return g.got.Write(p)
}

// Who logs never waits, whatever the writer does. What is left out is counted, and the rest comes in order.
func TestLogsOfAStalledWriter(t *testing.T) {
	to := &gate{open: make(chan struct{})}
	queue := logs.NewQueue(to)
	const lines = 40_000 // of 50 bytes: twice of what a queue holds
	for i := range lines {
		if n, err := fmt.Fprintf(queue, "%049d\n", i); n != 50 || err != nil {
			t.Fatal(n, err)
		}
	}
	queue.Flush(0) // what can't be written is not waited for
	close(to.open)
	queue.Flush(time.Minute)
	fmt.Fprintf(queue, "%049d\n", lines)
	queue.Flush(time.Minute)
	written, told, last := 0, 0, -1
	for line := range bytes.Lines(to.got.Bytes()) {
		var note struct{ Lines int }
		var number int
		if json.Unmarshal(line, &note) == nil && note.Lines > 0 {
			told += note.Lines
			continue
		}
		if _, err := fmt.Sscanf(string(line), "%d\n", &number); err != nil || number <= last {
			t.Fatalf("%q after line %d: %v", line, last, err)
		}
		written, last = written+1, number
	}
	if written < lines/2 || written+told != lines+1 || last != lines {
		t.Errorf("%d lines written, %d said to be left out, the last is %d; want %d together", written, told, last, lines+1)
	}
}

// A line whose write fails is counted as well.
func TestLogsOfAFailingWriter(t *testing.T) {
	to := &gate{open: make(chan struct{}), fails: errors.New("no space left on device")}
	close(to.open)
	queue := logs.NewQueue(to)
	for range 2 {
		fmt.Fprintln(queue, "line")
		queue.Flush(time.Minute)
	}
	var note struct{ Lines int }
	_, rest, _ := bytes.Cut(to.got.Bytes(), []byte("line\n"))
	if err := json.Unmarshal(rest, &note); err != nil || note.Lines != 1 {
		t.Errorf("%v: %s", err, &to.got)
	}
}
