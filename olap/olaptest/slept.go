package olaptest

import (
	"runtime"
	"time"
	"unsafe"
)

// Heap is how many bytes the heap holds, of what is in use.
func Heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Slept is a time of time.Now as it would be if the machine had slept for whole seconds before: the monotonic clock
// stood still. It relies on how package time keeps the two, which TestBetween finds out.
func Slept(t time.Time, d time.Duration) time.Time {
	const seconds = 30 // the bit of the first word where they begin
	*(*uint64)(unsafe.Pointer(&t)) += uint64(int64(d/time.Second)) << seconds
	return t
}
