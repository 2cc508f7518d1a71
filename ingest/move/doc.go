// Package move moves organizations from one cell to another while they are written and queried: those of a slot, or one
// that is pinned by it (package cells has the placement and its states).
//
// # The steps
//
// Each is a state of the subject in the two cells, its own row in each one's placement. Until 7 the command begins
// again, whatever is there; from 7 on it goes on.
//
//  1. Begin. An organization without a row of its own is pinned where it is. The new cell is told that the subject is
//     arriving, the old one that it is moving; of a slot, the new cell is told which organizations are pinned. What the
//     new cell has of its organizations is taken out. A crash leaves rows in the new cell that nobody reads, as it does
//     up to 6, and the organization pinned.
//  2. Copy. Everything of the organizations is stored in the new cell as it is, with its stamps, while they are written
//     and queried in the old one. Where attribution records have conflicts, every server of the new cell gets to know
//     it within snapshot.OverviewAge, which is waited for here, and before 7 of those that are found later: it would
//     count each record under all of its clocks. A crash: as 1.
//  3. Close, if neither clock is 10 seconds behind what it has to pass in 4 and 6, which 1 finds out first. From the
//     state closing on nothing that is stored in the old cell is acknowledged: whoever stores something looks at the
//     cell's own state before and after (cells.Gate). Questions are answered there as before. A crash leaves writers
//     waiting until the command is run again.
//  4. Agree. Inserts are waited for that began before 3, or within a Lease after it, for which a writer may rely on
//     what it has read: what they store is seen in the old cell before it is acknowledged, and should not be missing in
//     the new one for a while. (What a writer stores later, because it was stopped or stores a batch for longer, is.)
//     The old cell refreshes what it has until an instant, so that conflicts are found and rows of purged people are
//     taken out, and what came since 2 is copied. That is done again until nothing was counted since before that
//     instant, and no copied row is stamped after it: what is copied without a refresh of the old cell seems older than
//     the new one's watermark, and no refresh would look at it. Then each table has the same rows in both cells, which
//     ClickHouse computes. Where one has not, because rows were purged or replaced during 2, the new cell's are taken
//     out and copied again.
//  5. The rollup of the organizations is damaged in the new cell, because their rows are older than its watermark: they
//     are answered from the base tables until a server has built it again.
//  6. The new cell's clock passes that of the old one, and the stamps of all rows, so that no asOf is earlier than a
//     copied row. A clock that is too far behind ends the command, which lets writers go on when it is run again, in 1.
//  7. Switch. The new cell is told that it is switched, and then the old one. In between both answer, with the same
//     rows, and each goes on with the pages of the other one, whose cursors it accepts since 4.
//  8. Wait. Whoever read the state of the old cell before 7 may answer from it for a Lease. Only then, and when the new
//     cell's clock has passed once more what the old one's was, so that no row is stored with a stamp before an asOf
//     that was given away, 9 follows.
//  9. Open. The new cell is told that it is open, and then all others. Writers store there what was not acknowledged.
//  10. Purge. What the old cell has noted of questions, and of what was done to the organizations, is copied. The old
//     cell, which is leaving, takes out what it had. A crash leaves the rest of it, which nobody reads. Who purges an
//     organization in the new cell waits until this has ended (cells.Told.Leaves): a copy that comes later would be
//     there for good. Nobody who is asked to purge something does so in the old cell since 1 (cells.Pass.Rests): what
//     was copied would stay until the command is run again. What a server still holds in memory of questions, of the
//     last seconds before 8, is stored in the old cell after this: it is counted there, and a purge takes it out.
//
// # Two commands at once
//
// A command names itself by a random number in every row that it writes. A row is written on condition that the one
// before it is still the newest, and then what others write to the same store is waited for and the row read again, so
// that one of two goes on. What it copies and takes out carries the condition that its row is the newest one, evaluated
// by ClickHouse. It writes the new cell's row again before both cells are compared in 4, and when 10 has copied: a copy
// that reaches ClickHouse twice, the other time late, would bring back what was purged meanwhile. A command that takes
// over from another one waits for a Lease before it opens what that had closed.
//
// Of two commands for one subject to different cells, both may tell theirs that it is arriving: what the old cell says
// counts. Of two commands for a slot and one of its organizations the one that begins later ends with an error, unless
// both had begun and ended early: then the organization goes on first. What a command read before may be out of date by
// then, so that conditions in the old cell keep the two apart:
//
//   - An organization is pinned on condition that its slot's row there is still the one that was found: the slot is not
//     being moved, and was not moved since. Nothing is told of the organization anywhere before that, since a row of it
//     in any cell counts before that of its slot.
//   - A slot's move waits for such statements when it has told the old cell that the slot is moving, and reads what is
//     pinned then. From there on none is added, so that it has the same organizations until it ends, and the new cell
//     knows all others before it answers.
//
// # What it depends on
//
//   - An insert into one store that was acknowledged is in every statement that begins later: acknowledgements and
//     copies rest on it (TestAGate, TestAMoveThatEndedEarly).
//   - A statement is listed in system.processes before it evaluates its conditions (rollup,
//     TestClaimsExcludeEachOther).
//   - A process that starts, or serves, tells a cell what it does not know, and never writes a row of a subject that is
//     under way or of which the cell knows where it is (cells.Admit, TestAMoveThatEndedLast).
//   - Rows that are stored again with their stamps, or twice, are the same records (TestAMove).
//   - cityHash64 of equal rows is equal in both cells: an error otherwise, and nothing is switched.
package move
