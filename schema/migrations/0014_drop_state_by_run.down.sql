ALTER TABLE runs ADD PROJECTION IF NOT EXISTS state_by_run
(
    SELECT organization_id, run_id, max(state)
    GROUP BY organization_id, run_id
)
