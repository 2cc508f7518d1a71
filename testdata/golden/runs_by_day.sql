-- {"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}
WITH
    bitAnd(bitShiftRight(state, 6), 15) AS f_status,
    intDiv(toUnixTimestamp64Milli(created_at) + multiIf(toUnixTimestamp64Milli(created_at) < {until_0:Int64}, {offset_0:Int64}, toUnixTimestamp64Milli(created_at) < {until_1:Int64}, {offset_1:Int64}, {offset_2:Int64}) + 86400000000000, 86400000) - 1000000 AS f_day,
    count() AS m_run_count,
    countIf(f_status IN (1, 2, 3, 4, 5, 6, 7, 8)) AS m_active_run_count
SELECT
    toInt64(f_day) AS c0,
    toUInt64(m_run_count) AS c1,
    toUInt64(m_active_run_count) AS c2
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
    AND bitAnd(bitShiftRight(state, 3), 7) = 1
GROUP BY f_day
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- offset_2 = 3600000
-- until_0 = 1774746000000
-- offset_0 = 3600000
-- until_1 = 1792890000000
-- offset_1 = 7200000
-- start_ms = 1772319600000
-- last_ms = 1793487599999
-- as_of_ms = 1770000000000
-- limit = 101
