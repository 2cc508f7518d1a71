-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["agent_id"],"range":RANGE}
SELECT
    CAST(toString(f_agent_id), 'Nullable(String)') AS c0,
    a_agent_name AS c1,
    toUInt64(m_run_count) AS c2
FROM
(
    SELECT
        f_agent_id,
        sum(s_runs) AS m_run_count
    FROM
    (
        WITH
            agent_id AS f_agent_id
        SELECT
            f_agent_id,
            sum(runs) AS s_runs
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND hour >= {first_span:Int64}
            AND hour < {after_span:Int64}
        GROUP BY f_agent_id
    ) AS r
    GROUP BY f_agent_id
    HAVING sum(s_runs) > 0
) AS g
ANY LEFT JOIN
(
    SELECT agent_id AS a_agent_id, CAST(tupleElement(latest, 'name'), 'Nullable(String)') AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
WHERE 1 NOT IN (SELECT throwIf(kind = 'lease' AND tupleElement(latest, 'number') > {log_lease:Int64} OR kind = 'damage' AND tupleElement(latest, 'number') > {log_damage:Int64} OR kind = 'begin' AND tupleElement(latest, 'number') > {log_begin:Int64}, 'the rollup log changed') FROM rollup_log)
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- first_span = 490896
-- after_span = 491640
-- log_begin = 7
-- log_lease = 5
-- log_damage = 3
-- limit = 101
