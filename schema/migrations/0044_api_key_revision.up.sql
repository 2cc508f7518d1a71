ALTER TABLE api_keys
    MODIFY COLUMN IF EXISTS revision UInt64 MATERIALIZED multiIf(
        isNotNull(revoked_at), bitShiftLeft(toUInt64(3), 62) - toUInt64(greatest(toUnixTimestamp64Milli(assumeNotNull(revoked_at)), 0)),
        isNotNull(expires_at), bitShiftLeft(toUInt64(1), 62) - toUInt64(greatest(toUnixTimestamp64Milli(assumeNotNull(expires_at)), 0)),
        toUInt64(0))
