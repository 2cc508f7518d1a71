-- {"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":RANGE}
SELECT
    m_attributed_run_count AS c0,
    m_completed_attributed_run_count AS c1,
    greatest(toUnixTimestamp64Milli(nowInBlock64(3)), toUnixTimestamp64Milli(m_first_stored_at)) AS as_of_ms
FROM
(
    SELECT
        max(p_first_stored_at) AS m_first_stored_at,
        count() AS m_attributed_run_count,
        countIf(f_status = 576) AS m_completed_attributed_run_count
    FROM
    (
        SELECT
            f_pair,
            bitAnd(max(run_state), 960) AS f_status,
            max(f_first_stored_at) AS p_first_stored_at
        FROM
        (
            SELECT pair AS f_pair, run_id AS f_run_id, first_stored_at AS f_first_stored_at
            FROM attributions
            WHERE organization_id = {organization:String}
                AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
        ) AS r
        LEFT JOIN
        (
            SELECT run_id AS f_run_id, state AS run_state
            FROM runs
            WHERE organization_id = {organization:String}
                AND bitAnd(state, 63) != 63
        ) AS s USING (f_run_id)
        GROUP BY f_pair
    ) AS p
) AS g

-- organization = acme
