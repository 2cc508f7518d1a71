package olaptest

import (
	"time"
	"unsafe"
)

// Slept is a time of time.Now as it would be if the machine had slept for whole seconds before: the monotonic clock
// stood still. It relies on how package time keeps the two, which TestBetween finds out.
func Slept(t time.Time, d time.Duration) time.Time {
	const seconds = 30 // the bit of the first word where they begin
	*(*uint64)(unsafe.Pointer(&t)) += uint64(int64(d/time.Second)) << seconds
	return t
}
