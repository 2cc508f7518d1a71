-- {"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["agent_id"],"order":[{"member":"failed_run_count","direction":"desc"}],"limit":10,"range":RANGE}
SELECT toString(f_agent_id) AS c0, a_agent_name AS c1, m_failed_run_count AS c2
FROM
(
    WITH bitAnd(state, 960) AS f_status, tupleElement(agent, 'agent_id') AS f_agent_id
    SELECT f_agent_id, countIf(f_status = 640) AS m_failed_run_count
    FROM runs FINAL
    WHERE organization_id = {organization:String}
        AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
        AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
        AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
        AND bitAnd(state, 56) = 8
    GROUP BY f_agent_id
) AS g
ANY LEFT JOIN
(
    SELECT
        agent_id AS a_agent_id,
        toNullable(tupleElement(latest, 'name')) AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
ORDER BY c2 DESC NULLS LAST, c0 ASC NULLS LAST
LIMIT 11

-- organization = acme
