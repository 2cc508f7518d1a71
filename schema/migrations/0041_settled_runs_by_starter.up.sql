ALTER TABLE settled_runs
    ADD COLUMN IF NOT EXISTS week Int32 MATERIALIZED toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2209334400000, 604800000) - 3653) CODEC(Delta, ZSTD(1)),
    ADD PROJECTION IF NOT EXISTS by_starter
    (
        SELECT organization_id, week, starter, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, week, starter
    ) WITH SETTINGS (index_granularity = 1024)
