package olap

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
)

// An answers caches the answers of queries that are asked again.
//
//  1. A query that was not asked before is only noted: most queries are asked once.
//  2. When it is asked again, a snapshot is taken, and then the query executes. The answer is cached with the snapshot,
//     which is not newer than the rows that the statement read.
//  3. From then on a snapshot is taken, after the request arrived. If the organization is the same in both, the cached
//     answer is the answer now, and its asOf the instant of the snapshot. Else as 2. Where the answer was read from the
//     rollup, the rollup has to be the same too: an answer depends on everything that it rests on.
//
// Requests that come at once share a snapshot. The pages of an answer keep the asOf that they share. So the first of
// several is not cached for a restricted access: that asOf would say whether anything was stored of the organization.
type answers struct {
	view   *snapshot.View
	cached *cache.Cache[answered]
	off    atomic.Bool                       // inserts are not counted
	last   atomic.Pointer[snapshot.Snapshot] // the last one that was taken for an answer
}

// answerAge is how long an answer is cached at most. It bounds what memory is used for, not how old an answer is.
const answerAge = time.Hour

// An answered is a query that was asked; its result is nil until it is asked again, and never has the request.
type answered struct {
	result *Result
	at     snapshot.Snapshot // of before it was read
}

// holds reports whether it is an organization's answer at a later snapshot.
func (a answered) holds(later snapshot.Snapshot, organization schema.OrganizationID) bool {
	all := snapshot.Records{Organization: organization}
	switch {
	case a.result == nil:
		return false
	case a.result.fromRollup:
		return a.at.SameRollup(later, all)
	}
	return a.at.Same(later, all)
}

// CacheAnswers makes the engine cache answers, in at most so many bytes. Call it before the first query.
func (e *Engine) CacheAnswers(bytes int) {
	e.answers = &answers{view: e.view, cached: cache.New[answered](bytes, answerAge)}
}

// reuse answers from the cache where it can.
func (e *Engine) reuse(ctx context.Context, r narrowed) (*Result, error) {
	// An answer has a cursor, or was given to one, that other secrets do not open.
	page := r.page()
	owner, key := string(r.OrganizationID), cache.KeyOf(page[:], []byte(e.sealer.Load().ID()))
	before, known := e.answers.cached.Get(owner, key)
	if !known {
		e.answers.cached.Put(owner, key, answered{}, 0)
		return e.answer(ctx, r, false)
	}
	now, err := e.answers.take(ctx, r.OrganizationID)
	if err != nil {
		return nil, err
	}
	if before.holds(now, r.OrganizationID) {
		return before.result.again(r, now.Now), nil
	}
	result, err := e.answer(ctx, r, now.Conflicts(r.OrganizationID))
	tells := r.restricted && r.Query.Cursor == "" && result != nil && result.cursor != ""
	if err == nil && now.StoredUntil(result.asOf, r.OrganizationID) && !tells {
		kept, bytes := result.kept()
		e.answers.cached.Put(owner, key, answered{kept, now.For(r.OrganizationID)}, bytes)
	}
	return result, err
}

// take takes a snapshot for an organization. What was purged does not stay in memory either.
func (a *answers) take(ctx context.Context, organization schema.OrganizationID) (snapshot.Snapshot, error) {
	now, err := a.view.Take(ctx, 0, organization)
	if err != nil {
		return now, err
	}
	if last := a.last.Swap(&now); last != nil && last.Altered(now) {
		a.cached.Clear()
	}
	return now, nil
}

// again is a cached result as the answer of now to a request.
func (r *Result) again(to narrowed, now time.Time) *Result {
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
	kept.request, kept.table = narrowed{}, &table
	table.Rows = make([][]value.Value, len(r.table.Rows))
	bytes := int(unsafe.Sizeof(kept)+unsafe.Sizeof(table)) + len(kept.cursor) + keptBytes
	for i, row := range r.table.Rows {
		table.Rows[i] = row // what was cut off stays behind
		bytes += int(unsafe.Sizeof(row)) + len(row)*int(unsafe.Sizeof(value.Value{}))
		for _, v := range row {
			bytes += allocated(len(v.Text))
		}
	}
	bytes += cap(table.Columns) * int(unsafe.Sizeof(compile.Column{})) // their texts are the catalog's
	return &kept, bytes
}

// keptBytes is what is left of a result: the texts of its strategy, and the counts of the snapshot.
const keptBytes = 640

// allocated is about what a text takes that is allocated by itself: the classes of sizes are an eighth apart.
func allocated(length int) int {
	if length == 0 {
		return 0
	}
	return length + length/8 + 8
}

// follow turns the cache off while the store does not count all inserts.
func (a *answers) follow(ctx context.Context) {
	counted, err := a.view.Counted(ctx)
	if err != nil {
		return // the queries say it
	}
	if off := !counted; a.off.Swap(off) != off {
		a.cached.Clear()
	}
}
