CREATE TABLE IF NOT EXISTS shared_initiator_keys
(
    organization_id LowCardinality(String),
    initiator       UInt128
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, initiator)
