CREATE TABLE IF NOT EXISTS api_keys
(
    key_id          String,
    organization_id LowCardinality(String),
    name            String,
    scopes          Array(String),
    secret_hash     FixedString(32),
    created_at      DateTime64(3, 'UTC'),
    revoked_at      Nullable(DateTime64(3, 'UTC')),
    revision        UInt8 MATERIALIZED toUInt8(isNotNull(revoked_at))
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY key_id
