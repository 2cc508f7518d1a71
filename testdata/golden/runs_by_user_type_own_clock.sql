-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_type"],"range":RANGE}
WITH
    bitAnd(state, 7) AS f_user_type,
    first_stored_at AS f_first_stored_at,
    count() AS m_run_count,
    max(f_first_stored_at) AS m_first_stored_at
SELECT
    nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') AS c0,
    m_run_count AS c1,
    greatest(toUnixTimestamp64Milli(nowInBlock64(3)), toUnixTimestamp64Milli(m_first_stored_at)) AS as_of_ms
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND bitAnd(state, 56) = 8
GROUP BY f_user_type
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
