package olaptest

import (
	"math/rand/v2"
	"testing"
)

// A Sample chooses those of many like cases that a test tries: all of them, and with -short one of every so many. It
// begins with a random one then, so that every case is tried in some run.
type Sample struct{ left, of int }

// NewSample returns one that, with -short, chooses one of every so many cases.
func NewSample(of int) *Sample {
	if !testing.Short() {
		of = 1
	}
	return &Sample{left: rand.IntN(of), of: of}
}

// Some are those of several cases that a sample of one in so many tries. The cases stay as they are.
func Some[T any](of int, cases ...T) (tried []T) {
	s := NewSample(of)
	for _, c := range cases {
		if s.Try() {
			tried = append(tried, c)
		}
	}
	return tried
}

// Try reports whether the next case is to be tried.
func (s *Sample) Try() bool {
	if s.left--; s.left >= 0 {
		return false
	}
	s.left = s.of - 1
	return true
}
