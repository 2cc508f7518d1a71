package push_test

import (
	"runtime"
	"testing"

	"github.com/runlens/runlens/ingest/source"
)

// A small body takes little memory: whoever reads it has its buffer from the body before.
func TestBuffersAreUsedAgain(t *testing.T) {
	const bodies = 100
	text := lines("acme", "eve")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range bodies {
		read(t, "acme", text)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / bodies; each > source.BufferBytes/8 {
		t.Errorf("each body took %d bytes", each)
	}
}
