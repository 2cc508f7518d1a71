CREATE TABLE IF NOT EXISTS starters
(
    organization_id      LowCardinality(String),
    starter              UInt128,
    initiator_identifier String,
    initiator_name       Nullable(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, starter, initiator_identifier, initiator_name)
SETTINGS allow_nullable_key = 1, non_replicated_deduplication_window = 1000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
