-- A company at work: every second a run begins that somebody started, and runs of the last minutes come to an end.
INSERT INTO agents (organization_id, agent_id, name, slug)
SELECT 'acme', md5('agent ' || n)::uuid, 'Agent ' || n, 'agent-' || n FROM generate_series(1, 5) AS n
ON CONFLICT DO NOTHING;

WITH begun AS (
    INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier, initiator_name, initiator_type)
    SELECT 'acme', gen_random_uuid(), md5('agent ' || ceil(random() * 5))::uuid, 'RUNNING',
        'person' || person || '@acme.example', 'Person ' || person, 'internal'
    FROM (SELECT ceil(random() * 20) AS person) AS p
    RETURNING run_id, agent_id, initiator_identifier, initiator_name
), attributed AS (
    INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, user_name,
        activity_type, run_initiation_type, source)
    SELECT 'acme', gen_random_uuid(), run_id, agent_id, initiator_identifier, initiator_name,
        'initiated', 'human', 'web'
    FROM begun
)
UPDATE runs SET status = CASE WHEN random() < 0.9 THEN 'COMPLETED' ELSE 'FAILED' END
WHERE organization_id = 'acme' AND status = 'RUNNING' AND created_at < now() - random() * interval '5 minutes'
\watch 1
