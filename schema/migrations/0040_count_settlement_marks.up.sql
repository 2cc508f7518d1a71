CREATE MATERIALIZED VIEW IF NOT EXISTS count_settlement_marks TO stored_counts AS
SELECT 'settlement_marks' AS source, '' AS organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM settlement_marks
