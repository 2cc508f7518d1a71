-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["agent_id"],"range":RANGE}
SELECT toString(f_agent_id) AS c0, a_agent_name AS c1, toUInt64(m_run_count) AS c2
FROM
(
    SELECT f_agent_id, sum(s_runs) AS m_run_count
    FROM
    (
        WITH agent_id AS f_agent_id
        SELECT f_agent_id, sum(runs) AS s_runs
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND hour >= 490896
            AND hour < 491640
        GROUP BY f_agent_id
    ) AS r
    GROUP BY f_agent_id
    HAVING sum(s_runs) > 0
) AS g
ANY LEFT JOIN
(
    SELECT
        agent_id AS a_agent_id,
        toNullable(tupleElement(latest, 'name')) AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3 OR kind = 'begin' AND tupleElement(latest, 'number') > 7, 'the rollup log changed')
        FROM rollup_log
    )
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
