CREATE TABLE IF NOT EXISTS replacements
(
    replacement     UInt64,
    source          String,
    organization_id LowCardinality(String),
    kind            Enum8('agent' = 1, 'run' = 2, 'attribution' = 3),
    id              UUID
)
ENGINE = MergeTree
PARTITION BY replacement
ORDER BY (source, organization_id, kind, id)
SETTINGS old_parts_lifetime = 0,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
