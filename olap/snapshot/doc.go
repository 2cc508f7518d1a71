// Package snapshot reads what a query needs of concurrent writes: which inserts are in flight, what was ever counted,
// and what the rollup log says. There is one reading of the store, a Snapshot, and one rule for what rests on it
// (Snapshot.Same).
//
// A row gets the stamp first_stored_at when its insert begins, and becomes visible when the insert ends. A query leaves
// out rows with stamps after asOf. So the pages of a continuation agree if every row stamped at or before asOf was
// visible to the first of them:
//
//  1. View.Await waits. asOf is the millisecond before the store's clock. Every insert that began at or before asOf has
//     ended when it returns; later ones get later stamps.
//  2. View.Derive does not wait. Where nothing was stored of an organization recently, asOf is derived from the last
//     snapshot. Another one shows whether that was right (Confirm).
//  3. A query that no page follows takes the clock of its own statement: what was acknowledged before the query has an
//     earlier or the same stamp. If a page follows after all, Confirm shows whether both can share that clock.
//
// Callers who wait at once share a snapshot. Servers take one in the background, so that the first query of an
// organization does not wait either.
//
// It depends on four properties of ClickHouse: now64 is one constant of a statement, set when it begins; in a
// materialized view it is not earlier than that of the insert; an insert is listed in system.processes until its rows
// are visible and counted; materialized views have written before an insert is acknowledged.
// TestRowsInFlightAreAfterTheBoundary, TestConfirm and TestSame check them.
package snapshot
