package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// A Key stands for what a value is cached or shared under, however long that is. It is so long that nobody finds two
// things with one Key: a value is never given out for another key than its own.
type Key [sha256.Size]byte

// KeyOf is the Key of a list of texts. It keeps nothing of them.
func KeyOf(texts ...[]byte) (k Key) {
	h := sha256.New()
	var length [8]byte
	for _, text := range texts {
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:]) // so that no two lists are the same bytes
		h.Write(text)
	}
	h.Sum(k[:0])
	return k
}

// A Group shares executions among the callers of one key. A caller gets the result of an execution that began
// after the call, so that sharing never shows a state older than the call: who comes while an execution
// runs waits for the next one, together with all others who come meanwhile. The zero Group is
// ready. It is safe for concurrent use.
type Group[V any] struct {
	mu sync.Mutex
	// running has a key while an execution of it runs, with the next one, nil while nobody waits for it.
	running map[Key]*execution[V]
}

// An execution is what several callers wait for.
type execution[V any] struct {
	run     func(context.Context) (V, error)
	waiting int
	ctx     context.Context    // of the caller who came first, without its end
	until   time.Time          // the latest of the callers' deadlines
	endless bool               // a caller has no deadline
	cancel  context.CancelFunc // nil before it begins

	done  chan struct{} // closed when the result is there
	value V
	err   error
}

// Do returns the result of run, or of another caller's run with the same key. The end of ctx ends the caller's wait,
// and an execution that nobody waits for any longer. The value is shared: nobody may change it.
func (g *Group[V]) Do(ctx context.Context, key Key, run func(context.Context) (V, error)) (V, error) {
	g.mu.Lock()
	next, busy := g.running[key]
	if !busy {
		if g.running == nil {
			g.running = map[Key]*execution[V]{}
		}
		g.running[key] = nil
		g.mu.Unlock()
		defer g.ended(key)
		return run(ctx)
	}
	if next == nil {
		next = &execution[V]{run: run, ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
		g.running[key] = next
	}
	next.join(ctx)
	g.mu.Unlock()
	select {
	case <-next.done:
		return next.value, next.err
	case <-ctx.Done():
		g.leave(key, next)
		var none V
		return none, ctx.Err()
	}
}

// Waiting is how many callers wait for an execution to begin.
func (g *Group[V]) Waiting() (callers int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, next := range g.running {
		if next != nil {
			callers += next.waiting
		}
	}
	return callers
}

func (x *execution[V]) join(ctx context.Context) {
	x.waiting++
	deadline, ok := ctx.Deadline()
	x.endless = x.endless || !ok
	if deadline.After(x.until) {
		x.until = deadline
	}
}

func (g *Group[V]) leave(key Key, x *execution[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.waiting--; x.waiting > 0 {
		return
	}
	if x.cancel != nil {
		x.cancel()
	} else {
		g.running[key] = nil
	}
}

// ended begins the next execution of a key, for all who wait for it by now.
func (g *Group[V]) ended(key Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.running[key]
	if next == nil {
		delete(g.running, key)
		return
	}
	g.running[key] = nil
	ctx := next.ctx
	if next.endless {
		ctx, next.cancel = context.WithCancel(ctx)
	} else {
		ctx, next.cancel = context.WithDeadline(ctx, next.until)
	}
	go func() {
		defer g.ended(key)
		defer next.cancel()
		defer close(next.done)
		// On a goroutine of its own nobody else would catch it.
		defer func() {
			if r := recover(); r != nil {
				next.err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		next.value, next.err = next.run(ctx)
	}()
}
