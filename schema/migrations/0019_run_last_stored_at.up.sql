ALTER TABLE runs ADD COLUMN IF NOT EXISTS
    last_stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT first_stored_at CODEC(Delta, ZSTD(1))
