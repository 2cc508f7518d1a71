-- {"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["agent_id"],"order":[{"member":"failed_run_count","direction":"desc"}],"limit":10,"range":RANGE}
SELECT
    CAST(toString(f_agent_id), 'Nullable(String)') AS c0,
    a_agent_name AS c1,
    toUInt64(m_failed_run_count) AS c2
FROM
(
    WITH
        bitAnd(bitShiftRight(state, 6), 15) AS f_status,
        tupleElement(agent, 'agent_id') AS f_agent_id
    SELECT
        f_agent_id,
        countIf(f_status = 10) AS m_failed_run_count
    FROM runs FINAL
    WHERE organization_id = {organization:String}
        AND created_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
        AND created_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
        AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
        AND bitAnd(bitShiftRight(state, 3), 7) = 1
    GROUP BY f_agent_id
) AS g
ANY LEFT JOIN
(
    SELECT agent_id AS a_agent_id, CAST(tupleElement(latest, 'name'), 'Nullable(String)') AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
ORDER BY c2 DESC NULLS LAST, c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
-- limit = 11
