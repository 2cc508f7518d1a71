ALTER TABLE attributions ADD PROJECTION IF NOT EXISTS by_storing
(
    SELECT first_stored_at, organization_id, occurred_at, attribution_id, agent_id, activity_type, earliness
    ORDER BY first_stored_at
) WITH SETTINGS (index_granularity = 256)
