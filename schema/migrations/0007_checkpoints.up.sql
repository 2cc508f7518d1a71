CREATE TABLE IF NOT EXISTS checkpoints
(
    name     String,
    position String,
    revision UInt64,
    saved_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY name
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
