-- {"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}
WITH
    activity_type AS f_activity_type,
    intDiv(toUnixTimestamp64Milli(occurred_at) + 86400000000000, 86400000) AS f_day,
    countIf(f_activity_type = 'interacted') AS m_interaction_count
SELECT f_day AS c0, m_interaction_count AS c1
FROM attributions FINAL
WHERE organization_id = {organization:String}
    AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
GROUP BY f_day
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
