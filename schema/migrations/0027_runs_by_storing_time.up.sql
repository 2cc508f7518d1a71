ALTER TABLE runs ADD PROJECTION IF NOT EXISTS by_storing_time
(
    SELECT last_stored_at, organization_id, created_at, run_id, first_stored_at, record
    ORDER BY last_stored_at
) WITH SETTINGS (index_granularity = 256)
