package olaptest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Held is a connection whose statements can be held before they are sent, or when they have been executed, while
// something else happens: the store changes between any two statements of a process. They can be sent twice. To its
// statements the store's clock can be another one. It is safe for concurrent use.
type Held struct {
	driver.Conn
	shift     atomic.Int64 // in milliseconds
	executing atomic.Int64

	mu      sync.Mutex
	sent    []string
	hooks   []*hook
	inserts []insertHook
}

// A hook is what happens at one statement, once.
type hook struct {
	fits  func(sql string, number int) bool
	after bool
	do    func() // nil to send the statement once more
	keep  func(again func())
}

// An insertHook is what happens when a batch into a table is about to begin, once.
type insertHook struct {
	table string
	do    func()
}

// Hold returns a connection of which no statement is held yet.
func Hold(conn driver.Conn) *Held { return &Held{Conn: conn} }

// Restart begins to count statements again, from 1, and forgets what was not held.
func (h *Held) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent, h.hooks = nil, nil
}

// Sent is how many statements were sent since Restart.
func (h *Held) Sent() int { return len(h.Texts()) }

// Texts are those statements.
func (h *Held) Texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sent)
}

// Before holds the statement of a number until do has returned.
func (h *Held) Before(number int, do func()) {
	h.add(&hook{fits: func(_ string, n int) bool { return n == number }, do: do})
}

// BeforeInsert holds the next batch into a table until do has returned, as if the process was stopped before it.
// Batches have no number.
func (h *Held) BeforeInsert(table string, do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inserts = append(h.inserts, insertHook{table, do})
}

// Repeat sends the statement of a number twice, as after a lost answer. Where it is held as well, it is held in
// between.
func (h *Held) Repeat(number int) {
	h.add(&hook{fits: func(_ string, n int) bool { return n == number }})
}

// Late lets the next statement that has a text be sent again, later, as what a proxy has sent twice, and comes late the
// other time.
func (h *Held) Late(text string) (again func()) {
	return h.keep(func(sql string, _ int) bool { return strings.Contains(sql, text) })
}

// LateAt is Late for the statement of a number.
func (h *Held) LateAt(number int) (again func()) {
	return h.keep(func(_ string, n int) bool { return n == number })
}

func (h *Held) keep(fits func(sql string, number int) bool) (again func()) {
	kept := func() {}
	h.add(&hook{fits: fits, keep: func(again func()) { kept = again }})
	return func() { kept() }
}

// Executing is how many statements ClickHouse executes now. A statement that is held is not one of them.
func (h *Held) Executing() int { return int(h.executing.Load()) }

// After holds the answer to the next statement that has a text until do has returned.
func (h *Held) After(text string, do func()) {
	h.add(&hook{fits: func(sql string, _ int) bool { return strings.Contains(sql, text) }, after: true, do: do})
}

// Shift makes the store's clock seem so much ahead of what it is, to the millisecond. What is stored keeps the stamps
// of the store.
func (h *Held) Shift(by time.Duration) { h.shift.Store(by.Milliseconds()) }

// clock is how SQL reads the store's clock.
var clock = regexp.MustCompile(`now(InBlock)?64\(3(, 'UTC')?\)`)

// shifted is SQL in which the store's clock is ahead by so many milliseconds.
func shifted(sql string, by int64) string {
	if by == 0 {
		return sql
	}
	return clock.ReplaceAllString(sql, fmt.Sprintf("($0 + toIntervalMillisecond(%d))", by))
}

func (h *Held) add(one *hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks = append(h.hooks, one)
}

// hold waits for what happens before a statement, and returns what waits for what happens after it. first sends the
// statement for the first of two times.
func (h *Held) hold(sql string, first func(sql string)) (sent string, answered func()) {
	h.mu.Lock()
	h.sent = append(h.sent, sql)
	var before, after []func()
	twice := false
	kept := h.hooks[:0]
	for _, one := range h.hooks {
		switch {
		case !one.fits(sql, len(h.sent)):
			kept = append(kept, one)
		case one.keep != nil:
			one.keep(func() { first(shifted(sql, h.shift.Load())) })
		case one.do == nil:
			twice = true
		case one.after:
			after = append(after, one.do)
		default:
			before = append(before, one.do)
		}
	}
	h.hooks = kept
	h.mu.Unlock()
	if twice {
		h.executing.Add(1)
		first(shifted(sql, h.shift.Load()))
		h.executing.Add(-1)
	}
	for _, do := range before {
		do()
	}
	h.executing.Add(1)
	return shifted(sql, h.shift.Load()), func() {
		h.executing.Add(-1)
		for _, do := range after {
			do()
		}
	}
}

// codeSameID is ClickHouse's QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING: it is not quite done with what it answered already.
const codeSameID = 216

// accepted sends a statement until its first sending is out of the way.
func accepted(send func() error) error {
	for {
		err := send()
		var exception *clickhouse.Exception
		if !errors.As(err, &exception) || exception.Code != codeSameID {
			return err
		}
	}
}

// lost sends a statement whose answer nobody reads.
func (h *Held) lost(ctx context.Context, args []any) func(string) {
	return func(sql string) {
		if rows, err := h.Conn.Query(ctx, sql, args...); err == nil {
			for rows.Next() {
			}
			rows.Close()
		}
	}
}

// Query is part of driver.Conn. So are the others.
func (h *Held) Query(ctx context.Context, sql string, args ...any) (rows driver.Rows, err error) {
	sql, answered := h.hold(sql, h.lost(ctx, args))
	defer answered()
	err = accepted(func() error { rows, err = h.Conn.Query(ctx, sql, args...); return err })
	return rows, err
}

func (h *Held) QueryRow(ctx context.Context, sql string, args ...any) (row driver.Row) {
	sql, answered := h.hold(sql, h.lost(ctx, args))
	defer answered()
	_ = accepted(func() error { row = h.Conn.QueryRow(ctx, sql, args...); return row.Err() })
	return row
}

func (h *Held) Select(ctx context.Context, dest any, sql string, args ...any) error {
	sql, answered := h.hold(sql, h.lost(ctx, args))
	defer answered()
	return accepted(func() error { return h.Conn.Select(ctx, dest, sql, args...) })
}

func (h *Held) Exec(ctx context.Context, sql string, args ...any) error {
	sql, answered := h.hold(sql, func(sql string) { _ = h.Conn.Exec(ctx, sql, args...) })
	defer answered()
	return accepted(func() error { return h.Conn.Exec(ctx, sql, args...) })
}

func (h *Held) PrepareBatch(
	ctx context.Context, sql string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	var before []func()
	h.mu.Lock()
	h.inserts = slices.DeleteFunc(h.inserts, func(one insertHook) bool {
		fits := strings.HasPrefix(sql, "INSERT INTO "+one.table+" ")
		if fits {
			before = append(before, one.do)
		}
		return fits
	})
	h.mu.Unlock()
	for _, do := range before {
		do()
	}
	return h.Conn.PrepareBatch(ctx, sql, options...)
}
