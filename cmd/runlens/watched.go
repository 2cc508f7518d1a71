package main

import (
	"io"
	"sync"
)

// A watched writer remembers its first failure, so that no command has to look at each of its lines: a full disk must
// not pass for success. It is safe for concurrent use where the writer is. That standard output was closed (>&-) it
// can't know: Go's runtime opens the null device in its place, just as a parent does that wants no output.
type watched struct {
	io.Writer
	mu  sync.Mutex
	err error
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = err
		}
	}
	return n, err
}

func (w *watched) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
