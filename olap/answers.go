package olap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// An answers caches the answers of queries that are asked again.
//
//  1. A query that was not asked before is only noted: most queries are asked once.
//  2. When it is asked again, the store is asked for the organization's version (snapshot.Version), and then the query
//     executes. The answer is cached with the version, which is not newer than the rows that the statement read.
//  3. From then on the store is asked for the version, after the request arrived. If it is the same, the cached answer
//     is the answer now, and its asOf the instant of the version. Else as 2. Where the answer was read from the rollup,
//     the rollup has to be the same too: an answer depends on everything that it rests on.
//
// Requests that wait for a version at once share the statement that reads it. The pages of an answer keep the asOf that
// they share.
type answers struct {
	conn   driver.Conn
	cached *cache.Cache[answered]
	off    atomic.Bool // inserts are not counted

	mu      sync.Mutex
	next    *look // the one that requests may join; nil for none
	looking bool
	leases  snapshot.Count // at the last look; only look uses it
}

// answerAge is how long an answer is cached at most. It bounds what memory is used for, not how old an answer is.
const answerAge = time.Hour

// An answered is a query that was asked; its result is nil until it is asked again, and never has the request.
type answered struct {
	result  *Result
	version snapshot.Version
}

// holds reports whether it is the answer of a version.
func (a answered) holds(now snapshot.Version) bool {
	switch {
	case a.result == nil:
		return false
	case a.result.fromRollup:
		return a.version.SameRollup(now)
	}
	return a.version.Same(now)
}

// CacheAnswers makes the engine cache answers, in at most so many bytes. Call it before the first query.
func (e *Engine) CacheAnswers(bytes int) {
	e.answers = &answers{conn: e.conn, cached: cache.New[answered](bytes, answerAge)}
}

// reuse answers from the cache where it can.
func (e *Engine) reuse(ctx context.Context, r Request) (*Result, error) {
	if e.answers == nil || e.answers.off.Load() {
		return e.answer(ctx, r, snapshot.Version{})
	}
	// An answer has a cursor, or was given to one, that other secrets do not open.
	page := r.page()
	owner, key := string(r.OrganizationID), cache.KeyOf(page[:], []byte(e.sealer.Load().ID()))
	before, known := e.answers.cached.Get(owner, key)
	if !known {
		e.answers.cached.Put(owner, key, answered{}, 0)
		return e.answer(ctx, r, snapshot.Version{})
	}
	version, now, err := e.answers.version(ctx, r.OrganizationID)
	if err != nil {
		return nil, err
	}
	if before.holds(version) {
		return before.result.again(r, now), nil
	}
	result, err := e.answer(ctx, r, version)
	if err == nil && !now.IsZero() && version.StoredUntil(result.asOf) {
		kept, bytes := result.kept()
		e.answers.cached.Put(owner, key, answered{kept, version}, bytes)
	}
	return result, err
}

// again is a cached result as the answer of now to a request.
func (r *Result) again(to Request, now time.Time) *Result {
	result := *r
	result.request = to
	result.strategy = Strategy{Reads: "cached_answer", Page: r.strategy.Page}
	if r.cursor == "" && to.Query.Cursor == "" && now.After(r.asOf) {
		result.asOf = now.UTC()
	}
	return &result
}

// kept is a copy of a result that refers to nothing of its request, and about what it takes in memory.
func (r *Result) kept() (*Result, int) {
	kept, table := *r, *r.table
	kept.request, kept.table = Request{}, &table
	table.Rows = make([][]exec.Value, len(r.table.Rows))
	bytes := int(unsafe.Sizeof(kept)+unsafe.Sizeof(table)) + len(kept.cursor) + keptBytes
	for i, row := range r.table.Rows {
		table.Rows[i] = row // what was cut off stays behind
		bytes += int(unsafe.Sizeof(row)) + len(row)*int(unsafe.Sizeof(exec.Value{}))
		for _, value := range row {
			bytes += allocated(value.TextLen())
		}
	}
	bytes += cap(table.Columns) * int(unsafe.Sizeof(compile.Column{})) // their texts are the catalog's
	return &kept, bytes
}

// keptBytes is what is left of a result: the texts of its strategy.
const keptBytes = 256

// allocated is about what a text takes that is allocated by itself: the classes of sizes are an eighth apart.
func allocated(length int) int {
	if length == 0 {
		return 0
	}
	return length + length/8 + 8
}

// A look is a statement that reads the versions of several organizations.
type look struct {
	organizations []schema.OrganizationID
	done          chan struct{}
	versions      snapshot.Versions
	err           error
}

// lookPatience bounds a look, whoever waits for it.
const lookPatience = 10 * time.Second

// version returns the organization's version, read after the call, and the instant.
func (a *answers) version(
	ctx context.Context, of schema.OrganizationID,
) (v snapshot.Version, now time.Time, err error) {
	a.mu.Lock()
	if a.next == nil {
		a.next = &look{done: make(chan struct{})}
	}
	joined := a.next
	joined.organizations = append(joined.organizations, of)
	if !a.looking {
		a.looking = true
		go a.look(context.WithoutCancel(ctx))
	}
	a.mu.Unlock()
	select {
	case <-joined.done:
		return joined.versions.Of[of], joined.versions.Now, joined.err
	case <-ctx.Done():
		return v, now, context.Cause(ctx)
	}
}

// look reads versions as long as somebody waits for one.
func (a *answers) look(ctx context.Context) {
	for {
		a.mu.Lock()
		l := a.next
		a.next, a.looking = nil, l != nil
		a.mu.Unlock()
		if l == nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, lookPatience)
		l.versions, l.err = snapshot.ReadVersions(limited, a.conn, l.organizations)
		cancel()
		if v, known := l.versions.Of[l.organizations[0]]; known && v.Leases() != a.leases {
			a.leases = v.Leases()
			a.cached.Clear() // what was purged does not stay in memory either
		}
		close(l.done)
	}
}

// follow turns the cache off while the store does not count all inserts.
func (a *answers) follow(ctx context.Context) {
	counted, err := snapshot.Counted(ctx, a.conn)
	if err != nil {
		return // the queries say it
	}
	if off := !counted; a.off.Swap(off) != off {
		a.cached.Clear()
	}
}
