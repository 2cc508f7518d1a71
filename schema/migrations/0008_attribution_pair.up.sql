ALTER TABLE attributions ADD COLUMN IF NOT EXISTS
    pair UInt128 MATERIALIZED reinterpretAsUInt128(sipHash128(user_identifier, run_id)) CODEC(NONE)
