-- {"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count","active_attributed_run_count","interaction_count"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}
SELECT
    toUInt64(m_attributed_run_count) AS c0,
    toUInt64(m_completed_attributed_run_count) AS c1,
    toUInt64(m_active_attributed_run_count) AS c2,
    toUInt64(m_interaction_count) AS c3
FROM
(
    SELECT
        count() AS m_attributed_run_count,
        countIf(f_status = 9) AS m_completed_attributed_run_count,
        countIf(f_status IN (1, 2, 3, 4, 5, 6, 7, 8)) AS m_active_attributed_run_count,
        sum(p_interaction_count) AS m_interaction_count
    FROM
    (
        SELECT
            f_pair,
            bitAnd(bitShiftRight(max(run_state), 6), 15) AS f_status,
            countIf(f_activity_type = 'interacted') AS p_interaction_count
        FROM
        (
            SELECT
                pair AS f_pair,
                run_id AS f_run_id,
                activity_type AS f_activity_type
            FROM attributions FINAL
            WHERE organization_id = {organization:String}
                AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
                AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
                AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
        ) AS r
        ANY LEFT JOIN
        (
            SELECT run_id AS f_run_id, state AS run_state
            FROM runs FINAL
            WHERE organization_id = {organization:String}
                AND bitAnd(state, 63) != 63
        ) AS s USING (f_run_id)
        GROUP BY f_pair
    ) AS p
) AS g

-- organization = acme
-- start_ms = 1738368000000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
