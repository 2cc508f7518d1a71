package postgres

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrOtherServer is the error of a reading that another server answers than the one before it (OneServer).
var ErrOtherServer = errors.New("the source's address reached another server than before: if it stands for several, " +
	"name one, or let target_session_attrs=read-write choose the one that takes writes")

// A server is what answered first in a context of OneServer. An address may stand for several: those that it lists,
// those of a name or behind a pooler, and the one that takes over after an outage.
type server struct {
	mu      sync.Mutex
	started time.Time // no two servers started in one microsecond; zero before an answer
}

type serverKey struct{}

// OneServer returns a context in which one server answers all readings, or they fail with ErrOtherServer.
func OneServer(ctx context.Context) context.Context {
	return context.WithValue(ctx, serverKey{}, &server{})
}

// checkServer returns ErrOtherServer where another server has answered before the one that started then.
func checkServer(ctx context.Context, started time.Time) error {
	s, ok := ctx.Value(serverKey{}).(*server)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started.IsZero() {
		s.started = started
	}
	if !s.started.Equal(started) {
		return ErrOtherServer
	}
	return nil
}
