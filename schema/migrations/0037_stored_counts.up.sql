CREATE TABLE IF NOT EXISTS stored_counts
(
    source          Enum8('runs' = 1, 'attributions' = 2, 'settlement_marks' = 3),
    organization_id String,
    rows            SimpleAggregateFunction(sum, UInt64),
    last_stored_at  SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (source, organization_id)
