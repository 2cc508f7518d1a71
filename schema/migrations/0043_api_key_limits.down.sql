ALTER TABLE api_keys
    DROP COLUMN IF EXISTS verification,
    DROP COLUMN IF EXISTS expires_at,
    DROP COLUMN IF EXISTS networks
