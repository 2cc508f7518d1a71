CREATE TABLE IF NOT EXISTS api_key_uses
(
    key_id       String,
    last_used_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY key_id
