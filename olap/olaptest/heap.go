package olaptest

import "runtime"

// Heap is how many bytes the heap holds, of what is in use.
func Heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
