-- {"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count","active_attributed_run_count","interaction_count"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}
SELECT
    m_attributed_run_count AS c0,
    m_completed_attributed_run_count AS c1,
    m_active_attributed_run_count AS c2,
    m_interaction_count AS c3
FROM
(
    SELECT
        count() AS m_attributed_run_count,
        countIf(f_status = 576) AS m_completed_attributed_run_count,
        countIf(f_status IN (64, 128, 192, 256, 320, 384, 448, 512)) AS m_active_attributed_run_count,
        sum(p_interaction_count) AS m_interaction_count
    FROM
    (
        SELECT
            f_pair,
            bitAnd(max(run_state), 960) AS f_status,
            countIf(f_activity_type = 'interacted') AS p_interaction_count
        FROM
        (
            SELECT pair AS f_pair, run_id AS f_run_id, activity_type AS f_activity_type
            FROM attributions FINAL
            WHERE organization_id = {organization:String}
                AND occurred_at >= fromUnixTimestamp64Milli(1738368000000, 'UTC')
                AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
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
