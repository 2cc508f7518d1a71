CREATE TABLE IF NOT EXISTS settled_runs
(
    organization_id LowCardinality(String),
    created_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run_id          UUID,
    state           UInt64 CODEC(Delta, ZSTD(1)),
    agent_id        UUID,
    initiator       UInt128 EPHEMERAL 0,
    initiator_name  Nullable(String),
    starter         UInt128 DEFAULT if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16))))),
    first_stored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    sign            Int8,

    quarter   Int32 MATERIALIZED toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2208988800000, 900000) - 2454432) CODEC(Delta, ZSTD(1)),
    hour      Int32 MATERIALIZED toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2208988800000, 3600000) - 613608) CODEC(Delta, ZSTD(1)),
    user_type UInt8 MATERIALIZED bitAnd(state, 7),
    runs      Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 3), 7) = 1, sign, 0),
    completed Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 9, runs, 0),
    failed    Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 10, runs, 0),
    cancelled Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 11, runs, 0),
    active    Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) BETWEEN 1 AND 8, runs, 0),

    PROJECTION by_quarter
    (
        SELECT organization_id, quarter, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, quarter
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_agent
    (
        SELECT organization_id, hour, agent_id, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, hour, agent_id
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_user_type
    (
        SELECT organization_id, quarter, user_type, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, quarter, user_type
    ) WITH SETTINGS (index_granularity = 1024)
)
ENGINE = CollapsingMergeTree(sign)
PARTITION BY toYear(created_at) * 10 + toQuarter(created_at)
ORDER BY (organization_id, created_at, run_id, state, agent_id, starter)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
