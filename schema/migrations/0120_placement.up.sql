-- Works with binaries from 100 on.
-- Where organizations are, of stores that are cells (RUNLENS_CELLS). A subject is a slot ('slot:0' to 'slot:255'), or
-- 'self', which says what cell this store is. The greatest revision counts.
CREATE TABLE IF NOT EXISTS placement
(
    subject  String,
    cell     String,
    revision UInt64
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY subject
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
