CREATE TABLE IF NOT EXISTS checkpoints
(
    name     String,
    position String,
    revision UInt64,
    saved_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY name
