-- {"model":"agent_user_activity","metrics":["attributed_run_count","associated_run_count"],"range":RANGE}
WITH
    pair AS f_pair,
    activity_type AS f_activity_type,
    uniqExact(f_pair) AS m_attributed_run_count,
    uniqExactIf(f_pair, f_activity_type = 'initiated') AS m_initiated_run_count
SELECT
    m_attributed_run_count AS c0,
    toUInt64(m_attributed_run_count - m_initiated_run_count) AS c1
FROM attributions
WHERE organization_id = {organization:String}
    AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')

-- organization = acme
