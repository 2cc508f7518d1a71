ALTER TABLE api_keys
    ADD COLUMN IF NOT EXISTS expires_at   Nullable(DateTime64(3, 'UTC')),
    ADD COLUMN IF NOT EXISTS networks     Array(String),
    ADD COLUMN IF NOT EXISTS verification String MATERIALIZED if(isNotNull(revoked_at), '', concat(
        secret_hash, organization_id, '\n',
        arrayStringConcat(scopes, ','), '\n',
        arrayStringConcat(networks, ','), '\n',
        ifNull(toString(toUnixTimestamp64Milli(expires_at)), '')))
