ALTER TABLE attributions ADD PROJECTION IF NOT EXISTS by_person
(
    SELECT organization_id, occurred_at, attribution_id, run_id, agent_id, user_identifier, user_domain, user_name, activity_type, run_initiation_type, source, first_stored_at, pair
    ORDER BY organization_id, user_identifier, occurred_at
)
