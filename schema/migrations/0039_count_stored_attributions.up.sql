CREATE MATERIALIZED VIEW IF NOT EXISTS count_stored_attributions TO stored_counts AS
SELECT 'attributions' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM attributions
GROUP BY organization_id
