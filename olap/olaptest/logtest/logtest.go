// Package logtest keeps logs, and what commands print, for tests.
package logtest

import (
	"strings"
	"sync"
)

// A Buffer keeps what several goroutines write while a test reads it, as a file would. The zero Buffer is ready.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write keeps p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
