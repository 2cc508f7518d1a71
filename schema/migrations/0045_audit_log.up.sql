CREATE TABLE IF NOT EXISTS audit_log
(
    organization_id LowCardinality(String),
    at              DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    action_id       UUID,
    outcome         Enum8('begun' = 1, 'done' = 2, 'failed' = 3),
    action          LowCardinality(String),
    key_id          String,
    actor           String,
    details         String
)
ENGINE = MergeTree
ORDER BY (organization_id, at, action_id, outcome)
