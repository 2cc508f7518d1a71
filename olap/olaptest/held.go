package olaptest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Held is a connection whose statements can be held before they are sent, or when they have been executed, while
// something else happens: the store changes between any two statements of a process. To its statements the store's
// clock can be another one. It is safe for concurrent use.
type Held struct {
	driver.Conn
	shift atomic.Int64 // in milliseconds

	mu    sync.Mutex
	sent  int
	hooks []*hook
}

// A hook is what happens at one statement, once.
type hook struct {
	fits  func(sql string, number int) bool
	after bool
	do    func()
}

// Hold returns a connection of which no statement is held yet.
func Hold(conn driver.Conn) *Held { return &Held{Conn: conn} }

// Restart begins to count statements again, from 1, and forgets what was not held.
func (h *Held) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent, h.hooks = 0, nil
}

// Sent is how many statements were sent since Restart.
func (h *Held) Sent() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}

// Before holds the statement of a number until do has returned.
func (h *Held) Before(number int, do func()) {
	h.add(&hook{fits: func(_ string, n int) bool { return n == number }, do: do})
}

// After holds the answer to the next statement that has a text until do has returned.
func (h *Held) After(text string, do func()) {
	h.add(&hook{fits: func(sql string, _ int) bool { return strings.Contains(sql, text) }, after: true, do: do})
}

// Shift makes the store's clock seem so much ahead of what it is, to the millisecond. What is stored keeps the stamps
// of the store.
func (h *Held) Shift(by time.Duration) { h.shift.Store(by.Milliseconds()) }

func (h *Held) shifted(sql string) string {
	by := h.shift.Load()
	if by == 0 {
		return sql
	}
	for _, clock := range []string{"now64(3, 'UTC')", "nowInBlock64(3, 'UTC')"} {
		sql = strings.ReplaceAll(sql, clock, fmt.Sprintf("(%s + toIntervalMillisecond(%d))", clock, by))
	}
	return sql
}

func (h *Held) add(one *hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks = append(h.hooks, one)
}

// hold waits for what happens before a statement, and returns what waits for what happens after it.
func (h *Held) hold(sql string) (answered func()) {
	h.mu.Lock()
	h.sent++
	var before, after []func()
	kept := h.hooks[:0]
	for _, one := range h.hooks {
		switch {
		case !one.fits(sql, h.sent):
			kept = append(kept, one)
		case one.after:
			after = append(after, one.do)
		default:
			before = append(before, one.do)
		}
	}
	h.hooks = kept
	h.mu.Unlock()
	for _, do := range before {
		do()
	}
	return func() {
		for _, do := range after {
			do()
		}
	}
}

// Query is part of driver.Conn. So are the others.
func (h *Held) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	defer h.hold(sql)()
	return h.Conn.Query(ctx, h.shifted(sql), args...)
}

func (h *Held) QueryRow(ctx context.Context, sql string, args ...any) driver.Row {
	defer h.hold(sql)()
	return h.Conn.QueryRow(ctx, h.shifted(sql), args...)
}

func (h *Held) Select(ctx context.Context, dest any, sql string, args ...any) error {
	defer h.hold(sql)()
	return h.Conn.Select(ctx, dest, h.shifted(sql), args...)
}

func (h *Held) Exec(ctx context.Context, sql string, args ...any) error {
	defer h.hold(sql)()
	return h.Conn.Exec(ctx, h.shifted(sql), args...)
}
