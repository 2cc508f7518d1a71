package limit

import "sync"

// Shares are an amount of memory that many groups share, none of which can take all of it. They are safe for concurrent
// use.
type Shares struct {
	most, perGroup int64

	mu     sync.Mutex
	taken  int64
	groups map[string]int64 // of which something is taken
}

// NewShares returns Shares of which most (inclusive) can be taken at once, and perGroup (inclusive) by one group.
func NewShares(most, perGroup int64) *Shares {
	return &Shares{most: most, perGroup: perGroup, groups: map[string]int64{}}
}

// Taken is how much is taken.
func (s *Shares) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// A Share is what one group takes of Shares. Users of one group have one each.
type Share struct {
	shares *Shares
	group  string
}

// Of returns the Share of a group.
func (s *Shares) Of(group string) Share { return Share{s, group} }

// Take takes n bytes, or reports false at once where they are not left.
func (s Share) Take(n int64) bool {
	s.shares.mu.Lock()
	defer s.shares.mu.Unlock()
	if s.shares.taken+n > s.shares.most || s.shares.groups[s.group]+n > s.shares.perGroup {
		return false
	}
	s.shares.taken += n
	s.shares.groups[s.group] += n
	return true
}

// Give gives n bytes back that were taken.
func (s Share) Give(n int64) {
	s.shares.mu.Lock()
	defer s.shares.mu.Unlock()
	s.shares.taken -= n
	if s.shares.groups[s.group] -= n; s.shares.groups[s.group] == 0 {
		delete(s.shares.groups, s.group)
	}
}
