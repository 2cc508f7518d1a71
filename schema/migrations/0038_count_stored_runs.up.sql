CREATE MATERIALIZED VIEW IF NOT EXISTS count_stored_runs TO stored_counts AS
SELECT 'runs' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM runs
GROUP BY organization_id
