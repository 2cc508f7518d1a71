-- {"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}
WITH
    activity_type AS f_activity_type,
    intDiv(toUnixTimestamp64Milli(occurred_at) + {offset_0:Int64} + 86400000000000, 86400000) - 1000000 AS f_day,
    countIf(f_activity_type = 'interacted') AS m_interaction_count
SELECT
    toInt64(f_day) AS c0,
    toUInt64(m_interaction_count) AS c1
FROM attributions FINAL
WHERE organization_id = {organization:String}
    AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
    AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
GROUP BY f_day
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- offset_0 = 0
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
-- limit = 101
