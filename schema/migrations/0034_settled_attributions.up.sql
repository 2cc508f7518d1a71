CREATE TABLE IF NOT EXISTS settled_attributions
(
    organization_id LowCardinality(String),
    occurred_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    attribution_id  UUID,
    agent_id        UUID,
    activity_type   Enum8('initiated' = 1, 'associated' = 2, 'interacted' = 3),
    first_stored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    sign            Int8,

    quarter    Int32 MATERIALIZED toInt32(intDiv(toUnixTimestamp64Milli(occurred_at) + 2208988800000, 900000) - 2454432) CODEC(Delta, ZSTD(1)),
    hour       Int32 MATERIALIZED toInt32(intDiv(toUnixTimestamp64Milli(occurred_at) + 2208988800000, 3600000) - 613608) CODEC(Delta, ZSTD(1)),
    records    Int8 MATERIALIZED sign,
    interacted Int8 MATERIALIZED if(activity_type = 'interacted', sign, 0),

    PROJECTION by_quarter
    (
        SELECT organization_id, quarter, sum(records), sum(interacted)
        GROUP BY organization_id, quarter
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_agent
    (
        SELECT organization_id, hour, agent_id, sum(records), sum(interacted)
        GROUP BY organization_id, hour, agent_id
    ) WITH SETTINGS (index_granularity = 1024)
)
ENGINE = CollapsingMergeTree(sign)
PARTITION BY toYear(occurred_at) * 10 + toQuarter(occurred_at)
ORDER BY (organization_id, occurred_at, attribution_id, agent_id, activity_type)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384, deduplicate_merge_projection_mode = 'rebuild', non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
