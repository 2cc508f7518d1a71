CREATE TABLE IF NOT EXISTS runs
(
    organization_id LowCardinality(String),
    created_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run_id          UUID,

    agent_id             UUID EPHEMERAL toUUID('00000000-0000-0000-0000-000000000000'),
    kind                 Enum8('agent' = 1, 'sub_agent' = 2, 'browser' = 3, 'phone' = 4, 'inbound_phone' = 5, 'platform' = 6) EPHEMERAL 'agent',
    parent_run_id        Nullable(UUID) EPHEMERAL NULL,
    status               Enum8('PENDING' = 1, 'RUNNING' = 2, 'WAITING_FOR_SLOT' = 3, 'CANCELLING' = 4, 'AWAITING_REPLY' = 5, 'SLEEPING' = 6, 'PAUSING' = 7, 'PAUSED' = 8, 'COMPLETED' = 9, 'FAILED' = 10, 'CANCELLED' = 11) EPHEMERAL 'PENDING',
    initiator_identifier Nullable(String) EPHEMERAL NULL,
    initiator_name       Nullable(String) EPHEMERAL NULL,
    initiator_type       Nullable(Enum8('internal' = 1, 'external' = 2, 'automated' = 3, 'unknown' = 4)) EPHEMERAL NULL,
    updated_at           DateTime64(3, 'UTC') EPHEMERAL toDateTime64(0, 3, 'UTC'),

    first_stored_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),

    state SimpleAggregateFunction(max, UInt64) DEFAULT bitOr(
        bitShiftLeft(toUInt64(toUnixTimestamp64Milli(updated_at) + 2208988800000), 10),
        toUInt64(64 * toUInt8(status) + 8 * toUInt8(kind) + ifNull(toUInt8(initiator_type), 0))),

    agent SimpleAggregateFunction(max, Tuple(
        state    UInt64,
        agent_id UUID
    )) DEFAULT (state, agent_id),

    latest SimpleAggregateFunction(max, Tuple(
        state                UInt64,
        agent_id             UUID,
        initiator_identifier Nullable(String),
        initiator_name       Nullable(String),
        parent_run_id        Nullable(UUID)
    )) DEFAULT (state, agent_id, initiator_identifier, initiator_name, parent_run_id),

    PROJECTION state_by_run
    (
        SELECT organization_id, run_id, max(state)
        GROUP BY organization_id, run_id
    )
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(created_at)
ORDER BY (organization_id, created_at, run_id)
SETTINGS deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 1000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
