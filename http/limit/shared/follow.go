package shared

import (
	"context"
	"time"
)

const (
	// tryEvery is the pause before each try of a Redis that is away. By then all who waited for it when it went have given
	// up, so that none of them finds that it went once more.
	tryEvery = time.Second
	// tryAtMost is the longest such pause, of a Redis that keeps going.
	tryAtMost = 30 * time.Second
	// stays is how long it must have been there to be tried every second when it goes.
	stays = 10 * time.Second
)

// Follow tries Redis at once and, while it is away, again and again, until ctx is done.
func (s *Store) Follow(ctx context.Context) {
	if err := s.try(); err != nil {
		s.gone(err, "")
	}
	pause := tryEvery
	var back time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.went:
		}
		if pause = min(2*pause, tryAtMost); time.Since(back) >= stays {
			pause = tryEvery
		}
		for s.away.Load() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if s.try() == nil {
				back = time.Now()
				s.came()
			}
		}
	}
}

// gone notes that Redis failed for a tag.
func (s *Store) gone(err error, tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away.Load() {
		return
	}
	s.since, s.failed, s.alone = time.Now(), tag, s.local.Load()
	s.away.Store(true)
	s.logger.Warn("Redis is away: this server applies its own limits", "reason", reason(err))
	select {
	case s.went <- struct{}{}:
	default: // it is known already
	}
}

// came notes that Redis works again.
func (s *Store) came() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away.Store(false)
	s.logger.Info("Redis is back: limits hold over all servers",
		"away", time.Since(s.since).Round(time.Millisecond), "decided_alone", s.local.Load()-s.alone)
}
