package logs

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"
)

// queueBytes is the most of a log that waits to be written.
const queueBytes = 1 << 20

// A Queue writes lines to a writer that may be slow, or may not return: a pipe whose reader has stopped, or a terminal
// that somebody holds. Nobody who logs waits for it. Lines beyond queueBytes, and lines whose write fails, are left
// out; a line says how many once the writer takes lines again. Each Write has whole lines.
type Queue struct {
	to io.Writer

	mu      sync.Mutex
	waiting []byte
	lost    int           // lines left out that no line has told of
	idle    chan struct{} // closed when everything that was queued is written; nil while nothing writes
}

// NewQueue returns an empty queue.
func NewQueue(to io.Writer) *Queue { return &Queue{to: to} }

// Write queues lines. It never fails and never waits.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(lines) > queueBytes {
		q.lost += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.drain()
	}
	return len(lines), nil
}

// Flush waits until everything that was queued is written, for that long at most.
func (q *Queue) Flush(atMost time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(atMost):
	}
}

// drain writes until nothing waits.
func (q *Queue) drain() {
	for {
		lines, lost := q.take()
		if lines == nil {
			return
		}
		written := false
		for line := range bytes.Lines(lines) { // one by one: the kernel writes few bytes as a whole
			_, err := q.to.Write(line)
			if written = err == nil; !written {
				q.count(1)
			}
		}
		if !written || lost == 0 {
			continue
		}
		var note bytes.Buffer
		slog.New(slog.NewJSONHandler(&note, nil)).Warn("log lines are left out: they could not be written in time",
			"lines", lost)
		if _, err := q.to.Write(note.Bytes()); err == nil {
			q.count(-lost)
		}
	}
}

// take returns what waits, nil for nothing, and how many lines were left out.
func (q *Queue) take() (lines []byte, lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.idle)
		q.idle = nil
		return nil, 0
	}
	lines, q.waiting = q.waiting, nil
	return lines, q.lost
}

func (q *Queue) count(lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += lost
}
