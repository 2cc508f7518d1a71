package limit

import "sync"

// A Bytes is an amount of memory that many share. It is safe for concurrent use.
type Bytes struct {
	most int64

	mu    sync.Mutex
	taken int64
}

// NewBytes returns a Bytes of which most (inclusive) can be taken at once.
func NewBytes(most int64) *Bytes { return &Bytes{most: most} }

// Take takes n bytes, or reports false at once where they are not left.
func (b *Bytes) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken+n > b.most {
		return false
	}
	b.taken += n
	return true
}

// Give gives n bytes back that were taken.
func (b *Bytes) Give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
}
