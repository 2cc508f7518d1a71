-- {"model":"agent_user_activity","metrics":["attributed_run_count","associated_run_count","interacted_run_count"],"range":RANGE}
SELECT
    m_attributed_run_count AS c0,
    toUInt64(m_attributed_run_count - m_initiated_run_count) AS c1,
    m_interacted_run_count AS c2
FROM
(
    SELECT
        count() AS m_attributed_run_count,
        countIf(bitTest(p_bits, 0)) AS m_initiated_run_count,
        countIf(bitTest(p_bits, 1)) AS m_interacted_run_count
    FROM
    (
        WITH pair AS f_pair, activity_type AS f_activity_type
        SELECT
            f_pair,
            groupBitOr(bitOr(bitShiftLeft(toUInt8(f_activity_type = 'initiated'), 0), bitShiftLeft(toUInt8(f_activity_type = 'interacted'), 1))) AS p_bits
        FROM attributions
        WHERE organization_id = {organization:String}
            AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
            AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
            AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
        GROUP BY f_pair
    ) AS p
) AS g

-- organization = acme
