-- record: agent
SELECT organization_id, agent_id, name, slug, deleted_at, updated_at
FROM agents

-- record: run
SELECT organization_id, run_id, agent_id, kind, parent_run_id, status,
       initiator_identifier, initiator_name, initiator_type, created_at, updated_at
FROM runs

-- record: attribution
SELECT organization_id, attribution_id, run_id, agent_id, user_identifier, user_name,
       activity_type, run_initiation_type, source, occurred_at, updated_at
FROM attributions
