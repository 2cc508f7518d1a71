// Package rollup keeps the rollup: tables that hold the current row of every record with a sign, in whose projections
// sums are a look-up. It refreshes, checks and repairs them, reads how far they have come, and reads and caches what
// they lack. Refreshing changes no answer, only its cost.
//
// # What a query does
//
//  1. It reads the watermark: the rollup has every record none of whose rows was stored after it (snapshot.Log).
//  2. It needs the delta, what the rollup lacks since: signed rows, cached between queries (Deltas) or computed in its
//     statement (schema.RollupTable.InlineDelta). A delta is relative to what the rollup has.
//  3. Its statement aggregates the rollup and the delta. It fails if the log has an entry that its plan did not read
//     (schema.RollupUnchanged): damage, or for a cached delta a refresh batch. Then it is planned again.
//
// # What is written, in which order
//
// A refresh batch (claim has the protocol, Refresher.refresh the order):
//
//  1. The entry begin claims the batch. A crash leaves a claim without statements, which another refresher takes over.
//  2. Conflicts, marks of superseded runs, initiator keys, shared keys, and then rows of the rollup: each statement
//     writes what is still absent when it runs. A crash leaves a part of it, which the next batch completes. Queries
//     with an inline delta are right meanwhile, since it is relative; cached deltas are not used (1).
//  3. The entry commit moves the watermark. A crash before it leaves the old one, and the batch is done again.
//
// Damage (repair has the protocol) keeps queries of one organization and source away until it is repaired. A crash
// leaves the entry, and any server's checker begins again.
//
// A change (Change has the protocol), which takes records out, damages the rollup of its organizations on purpose, and
// keeps refreshers away. A crash leaves the damage.
//
// # What it depends on
//
//   - A part becomes visible by one rename (TestRefreshSurvivesKillsAtRenames).
//   - A statement is listed in system.processes before it evaluates its conditions (TestClaimsExcludeEachOther).
//   - A statement takes the snapshot of the tables of its FROM before that of the log in its WHERE
//     (TestLogIsReadAfterTheRollup).
//   - With enable_shared_storage_snapshot_in_query all reads of a table in one statement see the same rows
//     (TestSumsUnderConcurrentWritersAndRefreshers).
//   - Materialized views have counted an insert before it is acknowledged
//     (TestEveryAnswerHasWhatWasAcknowledgedBefore).
package rollup
