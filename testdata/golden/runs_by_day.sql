-- {"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}
WITH
    bitAnd(state, 960) AS f_status,
    intDiv(toUnixTimestamp64Milli(created_at) + multiIf(toUnixTimestamp64Milli(created_at) < 1774746000000, 86400003600000, toUnixTimestamp64Milli(created_at) < 1792890000000, 86400007200000, 86400003600000), 86400000) AS f_day,
    count() AS m_run_count,
    countIf(f_status IN (64, 128, 192, 256, 320, 384, 448, 512)) AS m_active_run_count
SELECT f_day AS c0, m_run_count AS c1, m_active_run_count AS c2
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli(1772319600000, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli(1793487599999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    AND bitAnd(state, 56) = 8
GROUP BY f_day
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
