CREATE TABLE IF NOT EXISTS conflicting_records
(
    organization_id LowCardinality(String),
    kind            Enum8('run' = 1, 'attribution' = 2),
    id              UUID,
    clock           DateTime64(3, 'UTC'),
    superseded      Bool
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, kind, id, clock, superseded)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
