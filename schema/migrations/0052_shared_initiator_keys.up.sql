CREATE TABLE IF NOT EXISTS shared_initiator_keys
(
    organization_id LowCardinality(String),
    initiator       UInt128
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, initiator)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
