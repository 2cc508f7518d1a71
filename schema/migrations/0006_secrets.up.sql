CREATE TABLE IF NOT EXISTS secrets
(
    name       LowCardinality(String),
    value      String,
    created_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
)
ENGINE = MergeTree
ORDER BY (name, created_at, value)
