CREATE TABLE IF NOT EXISTS agents
(
    organization_id LowCardinality(String),
    agent_id        UUID,

    name       String EPHEMERAL '',
    slug       Nullable(String) EPHEMERAL NULL,
    deleted_at Nullable(DateTime64(3, 'UTC')) EPHEMERAL NULL,
    updated_at DateTime64(3, 'UTC') EPHEMERAL toDateTime64(0, 3, 'UTC'),

    latest SimpleAggregateFunction(max, Tuple(
        updated_at DateTime64(3, 'UTC'),
        deleted_at Nullable(DateTime64(3, 'UTC')),
        slug       Nullable(String),
        name       String
    )) DEFAULT (updated_at, deleted_at, slug, name)
)
ENGINE = AggregatingMergeTree
ORDER BY (organization_id, agent_id)
SETTINGS non_replicated_deduplication_window = 1000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
