ALTER TABLE runs ADD PROJECTION IF NOT EXISTS by_storing
(
    SELECT last_stored_at, organization_id, created_at, run_id, first_stored_at, state, agent
    ORDER BY last_stored_at
) WITH SETTINGS (index_granularity = 256)
