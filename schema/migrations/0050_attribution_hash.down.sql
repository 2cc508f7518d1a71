ALTER TABLE attributions DROP COLUMN IF EXISTS attribution_hash
