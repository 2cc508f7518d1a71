CREATE TABLE IF NOT EXISTS audit_log
(
    organization_id LowCardinality(String),
    at              DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    action_id       UUID,
    outcome         Enum8('begun' = 1, 'done' = 2, 'failed' = 3),
    action          LowCardinality(String),
    key_id          String,
    actor           String,
    details         String
)
ENGINE = MergeTree
ORDER BY (organization_id, at, action_id, outcome)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
