CREATE TABLE IF NOT EXISTS purge_targets
(
    purge UInt64,
    kind  Enum8('organization' = 1, 'identifier' = 2, 'run' = 3, 'name' = 4, 'record' = 5),
    key   String
)
ENGINE = MergeTree
PARTITION BY purge
ORDER BY (kind, key)
SETTINGS old_parts_lifetime = 0,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
