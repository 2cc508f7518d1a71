// Package schema owns the shape of the store: the embedded migrations, the names of tables and
// columns, the codes that migrations pack into columns, and the identity of an organization.
// It imports nothing internal; every other package may import it. DESIGN.md says why the tables
// look as they do.
package schema

import "fmt"

// The tables, all in the database of the connection.
const (
	TableAgents         = "agents"
	TableRuns           = "runs"
	TableAttributions   = "attributions"
	TableAPIKeys        = "api_keys"
	TableAPIKeyUses     = "api_key_uses"
	TableSecrets        = "secrets"
	TableAuditLog       = "audit_log"
	TableUsageLog       = "usage_log"
	TableCheckpoints    = "checkpoints"
	TableRollupLog      = "rollup_log"
	TableInitiatorKeys  = "initiator_keys"
	TableSharedKeys     = "shared_initiator_keys"
	TableInsertCounters = "insert_counters"
	TablePurgeTargets   = "purge_targets"
	TablePurgedPeople   = "purged_people"
	TableConflicts      = "conflicting_records"
	TableReplacements   = "replacements"
	TablePlacement      = "placement"
)

// SourceAlterations is the source in insert_counters of the entries of the rollup log after which answers may be
// others: damages, and leases, without an organization.
const SourceAlterations = "alterations"

// The beginnings of names in TableCheckpoints: of how far a worker has copied a source into this store, and of how far
// one had come in the store from which organizations were moved here, before the name there.
const (
	CheckpointOfWorkers = "worker:"
	CheckpointArrived   = "arrived:"
)

// CountingViews are the materialized views that count in insert_counters.
var CountingViews = []string{"count_inserted_agents", "count_inserted_runs", "count_inserted_attributions",
	"count_conflicting_records", "count_rollup_log", "count_alterations"}

// DurableSettings are the settings of every table whose rows survive a loss of power: what an insert has acknowledged
// is synced, and so is what a merge or a mutation has written before it removes what that replaces. Tables of which
// each row may be lost are not among them: insert_counters, api_key_uses and usage_log (decisions/power-loss.md).
const DurableSettings = "fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1"

// TableDelta is the external table that comes with a statement whose delta is cached (olap/compile).
const TableDelta = "changes"

// ColumnAsked is its column that is 1 for the rows that the query needs, else 0.
const ColumnAsked = "asked"

// AgentColumns, RunColumns and AttributionColumns are the columns an insert names, in this order. They are the record
// fields of contract 3; the columns that are absent here (first_stored_at above all) are computed by ClickHouse and
// never sent.
var (
	AgentColumns = []string{"organization_id", "agent_id", "name", "slug", "deleted_at", "updated_at"}

	RunColumns = []string{"organization_id", "run_id", "created_at", "agent_id", "kind", "parent_run_id",
		"status", "initiator_identifier", "initiator_name", "initiator_type", "updated_at"}

	AttributionColumns = []string{"organization_id", "attribution_id", "run_id", "agent_id",
		"user_identifier", "user_name", "activity_type", "run_initiation_type", "source", "occurred_at"}
)

// The bits of runs.state, from the lowest: 3 of the initiator type, 3 of the kind, 4 of the status, and above them
// updated_at in milliseconds since 1900-01-01. Because the version comes first, the greatest state is the state of the
// newest version.
const (
	StateKindShift    = 3
	StateStatusShift  = 6
	StateVersionShift = 10

	initiatorTypeBits = 1<<StateKindShift - 1
	kindBits          = 1<<StateStatusShift - 1<<StateKindShift
	statusBits        = 1<<StateVersionShift - 1<<StateStatusShift

	// StateEpochOffsetMillis is added to Unix milliseconds so that versions before 1970 sort first.
	StateEpochOffsetMillis = 2_208_988_800_000
)

// StatusBits is SQL of the status in a run's state, as RunStatus.Bits: where it stands, because every function of a
// statement costs ClickHouse a hundredth of a small query.
func StatusBits(state string) string { return fmt.Sprintf("bitAnd(%s, %d)", state, statusBits) }

// InitiatorTypeSQL is the code of the initiator's type in a run's state, and AgentRunSQL the condition that the run is
// of the only kind that agent_runs counts (contract 3).
var (
	InitiatorTypeSQL = fmt.Sprintf("bitAnd(state, %d)", initiatorTypeBits)
	AgentRunSQL      = fmt.Sprintf("bitAnd(state, %d) = %d", kindBits, kindAgent<<StateKindShift)
)

const kindAgent = 1

// DomainSQL is SQL of the domain of the email address that identifier is, SQL too, as attributions.user_domain has it;
// NULL where it is none.
func DomainSQL(identifier string) string {
	text := "ifNull(" + identifier + ", '')"
	return "if(position(" + text + ", '@') = 0, NULL, arrayElement(splitByChar('@', " + text + "), -1))"
}

// IDHashSQL is the value of runs.run_hash, or of attributions.attribution_hash, for an id given as SQL. It finds
// candidates only: ids may share it.
func IDHashSQL(id string) string { return "toUInt32(cityHash64(" + id + "))" }

// A RunStatus is the code of a run status in runs.state, from 1; 0 means a run that is not copied yet.
type RunStatus uint8

// Bits is the status as it stands in a state.
func (s RunStatus) Bits() int { return int(s) << StateStatusShift }

// The statuses of spec section 3, in the order of their codes.
const (
	StatusPending RunStatus = iota + 1
	StatusRunning
	StatusWaitingForSlot
	StatusCancelling
	StatusAwaitingReply
	StatusSleeping
	StatusPausing
	StatusPaused
	StatusCompleted
	StatusFailed
	StatusCancelled
)

// ActiveStatuses are the non-terminal statuses of spec section 3.
var ActiveStatuses = []RunStatus{StatusPending, StatusRunning, StatusWaitingForSlot, StatusCancelling,
	StatusAwaitingReply, StatusSleeping, StatusPausing, StatusPaused}

// InitiatorTypes are the initiator classes of spec 2.7 in the order of their codes, from 1; code 0 is null.
var InitiatorTypes = []string{"internal", "external", "automated", "unknown"}

// ReadSettings are the settings of ClickHouse for statements that read records.
var ReadSettings = map[string]any{
	// A record's key contains its event clock, and partitions are months of that clock, so that versions of one record
	// are never in two partitions. FINAL may rely on it.
	"do_not_merge_across_partitions_select_final": 1,
	// With this rewriting on, an element of a tuple that FINAL merges as a whole could be read as a
	// column of its own, merged by itself, which gives elements of different versions.
	"optimize_functions_to_subcolumns": 0,
	// ClickHouse would derive further comparisons from those of every AND. None of them would help here, and to look for
	// them was two thirds of the analysis of the statement that reads what changed.
	"optimize_and_compare_chain": 0,
	// All reads of a table in one statement see the same rows: those of a delta and of the rollup that it completes.
	"enable_shared_storage_snapshot_in_query": 1,
}
