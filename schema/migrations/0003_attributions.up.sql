CREATE TABLE IF NOT EXISTS attributions
(
    organization_id LowCardinality(String),
    occurred_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    attribution_id  UUID,

    run_id              UUID,
    agent_id            UUID,
    user_identifier     String,
    user_domain         LowCardinality(Nullable(String)) MATERIALIZED if(position(user_identifier, '@') = 0, NULL, arrayElement(splitByChar('@', user_identifier), -1)),
    user_name           Nullable(String),
    activity_type       Enum8('initiated' = 1, 'associated' = 2, 'interacted' = 3),
    run_initiation_type Enum8('human' = 1, 'automated' = 2, 'unknown' = 3),
    source              LowCardinality(String),

    first_stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    earliness       UInt128 MATERIALIZED bitOr(
        bitShiftLeft(toUInt128(toUInt64(18446744073709551615 - toUnixTimestamp64Milli(first_stored_at))), 64),
        toUInt128(cityHash64(tuple(run_id, agent_id, user_identifier, user_name, activity_type, run_initiation_type, source)))) CODEC(ZSTD(1)),

    PROJECTION by_person
    (
        SELECT organization_id, occurred_at, attribution_id, run_id, agent_id, user_identifier, user_domain, user_name, activity_type, run_initiation_type, source, first_stored_at
        ORDER BY organization_id, user_identifier, occurred_at
    )
)
ENGINE = ReplacingMergeTree(earliness)
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (organization_id, occurred_at, attribution_id)
SETTINGS deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 1000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
