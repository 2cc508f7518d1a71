CREATE TABLE IF NOT EXISTS settlement_marks
(
    kind   Enum8('intent' = 1, 'done' = 2, 'hold' = 3),
    latest SimpleAggregateFunction(max, Tuple(
        number      UInt64,
        earliness   Int64,
        recorded_at DateTime64(3, 'UTC')
    ))
)
ENGINE = AggregatingMergeTree
ORDER BY kind
SETTINGS non_replicated_deduplication_window = 1000
