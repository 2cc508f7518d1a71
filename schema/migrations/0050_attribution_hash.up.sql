ALTER TABLE attributions ADD COLUMN IF NOT EXISTS
    attribution_hash UInt32 MATERIALIZED toUInt32(cityHash64(attribution_id)) CODEC(NONE)
