package postgres

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A serverError says what the address reached.
type serverError string

func (e serverError) Error() string {
	return "the source's address reached " + string(e) + ": if it stands for several, name one, or let " +
		"target_session_attrs=primary choose the one that takes writes"
}

const (
	// ErrOtherServer is the error of a reading that another server answers than the one before it (OneServer).
	ErrOtherServer serverError = "another server than before"
	// ErrBehind is the error of a reading by a standby that may lack what another server has shown (Latest).
	ErrBehind serverError = "a standby that may lack what was copied from another server"
)

// IsServer reports whether a reading failed because of the server that answered: the next one may reach another.
func IsServer(err error) bool {
	_, ok := errors.AsType[serverError](err)
	return ok
}

// A server is what answered first in a context of OneServer. An address may stand for several: those that it lists,
// those of a name or behind a pooler, and the one that takes over after an outage.
type server struct {
	latest  bool // Latest
	mu      sync.Mutex
	started time.Time // no two servers started in one microsecond; zero before an answer
}

type serverKey struct{}

// OneServer returns a context in which one server answers all readings, or they fail with ErrOtherServer.
func OneServer(ctx context.Context) context.Context {
	return context.WithValue(ctx, serverKey{}, &server{})
}

// Latest is OneServer for what is to be taken out of the store because the source lacks it. Readings by a standby fail
// with ErrBehind where another server may have shown more: one that takes writes has answered before, or the address
// stands for several.
func Latest(ctx context.Context) context.Context {
	return context.WithValue(ctx, serverKey{}, &server{latest: true})
}

// checkServer returns ErrOtherServer where another server has answered before the one that started then, and ErrBehind
// as Latest says.
func (d *Database) checkServer(ctx context.Context, started time.Time, standby bool) error {
	if !standby {
		d.primary.Store(true)
	}
	s, ok := ctx.Value(serverKey{}).(*server)
	if !ok {
		return nil
	}
	if s.latest && standby && (d.primary.Load() || d.several(ctx)) {
		return ErrBehind
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
