-- {"model":"agent_user_activity","metrics":["attributed_run_count","associated_run_count","interacted_run_count"],"range":RANGE}
SELECT
    toUInt64(m_attributed_run_count) AS c0,
    toUInt64(m_attributed_run_count - m_initiated_run_count) AS c1,
    toUInt64(m_interacted_run_count) AS c2
FROM
(
    SELECT
        count() AS m_attributed_run_count,
        countIf(bitTest(p_bits, 0)) AS m_initiated_run_count,
        countIf(bitTest(p_bits, 1)) AS m_interacted_run_count
    FROM
    (
        WITH
            pair AS f_pair,
            activity_type AS f_activity_type
        SELECT
            f_pair,
            groupBitOr(bitOr(bitShiftLeft(toUInt8(f_activity_type = 'initiated'), 0), bitShiftLeft(toUInt8(f_activity_type = 'interacted'), 1))) AS p_bits
        FROM attributions
        WHERE organization_id = {organization:String}
            AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
            AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
            AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
        GROUP BY f_pair
    ) AS p
) AS g

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
