CREATE TABLE IF NOT EXISTS secrets
(
    name       LowCardinality(String),
    value      String,
    created_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
)
ENGINE = MergeTree
ORDER BY (name, created_at, value)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
