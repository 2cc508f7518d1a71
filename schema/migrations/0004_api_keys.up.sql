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
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
