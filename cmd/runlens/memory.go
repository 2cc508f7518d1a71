package main

import "runtime/debug"

// memoryBounds are how the Go runtime keeps the memory of a command small.
type memoryBounds struct {
	bytes   int64 // from where on garbage is collected rather than more taken
	percent int   // of what is in use may come as garbage before; -1 for no such bound
}

var (
	// readingMemory is that of commands that read sources of any size. The batches in flight and their encoding, or the
	// rows that are compared, need less, so that the process stays within 256 MiB (ingest/README.md).
	readingMemory = memoryBounds{165 << 20, -1}
	// workerMemory is that of a worker, which waits more than it reads.
	workerMemory = memoryBounds{180 << 20, 100}
	// queryMemory is that of query, whose exports stream. A quarter of Go's default percentage has a Parquet export peak
	// 3 MiB lower, of 64.
	queryMemory = memoryBounds{26 << 20, 25}
)

// ownProcess says that a command has the process for itself. Where it has not, as in tests, a bound that is less than
// what others hold would have the runtime collect garbage all the time.
var ownProcess bool

// bound sets the bounds, until the process ends.
func (m memoryBounds) bound() {
	if ownProcess {
		debug.SetGCPercent(m.percent)
		debug.SetMemoryLimit(m.bytes)
	}
}
