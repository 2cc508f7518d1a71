CREATE TABLE IF NOT EXISTS settlement_marks
(
    kind            Enum8('intent' = 1, 'done' = 2, 'hold' = 3, 'damage' = 4),
    organization_id String DEFAULT '',
    source          Enum8('' = 0, 'runs' = 1, 'attributions' = 2) DEFAULT '',
    latest          SimpleAggregateFunction(max, Tuple(
        number      UInt64,
        earliness   Int64,
        recorded_at DateTime64(3, 'UTC')
    ))
)
ENGINE = AggregatingMergeTree
ORDER BY (kind, organization_id, source)
SETTINGS non_replicated_deduplication_window = 1000,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
