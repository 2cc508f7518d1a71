CREATE TABLE IF NOT EXISTS conflicting_records
(
    organization_id LowCardinality(String),
    kind            Enum8('run' = 1, 'attribution' = 2),
    id              UUID,
    clock           DateTime64(3, 'UTC'),
    superseded      Bool
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, kind, id, clock, superseded)
