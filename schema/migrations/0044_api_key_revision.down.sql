ALTER TABLE api_keys
    MODIFY COLUMN IF EXISTS revision UInt64 MATERIALIZED if(isNotNull(revoked_at), bitShiftLeft(toUInt64(3), 62), toUInt64(0))
