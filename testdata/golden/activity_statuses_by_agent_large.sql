-- {"model":"agent_user_activity","metrics":["completed_attributed_run_count","active_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}
SELECT
    toString(f_agent_id) AS c0,
    a_agent_name AS c1,
    m_completed_attributed_run_count AS c2,
    m_active_attributed_run_count AS c3
FROM
(
    WITH bitAnd(run_state, 960) AS f_status
    SELECT
        f_agent_id,
        uniqExactIf(f_pair, f_status = 576) AS m_completed_attributed_run_count,
        uniqExactIf(f_pair, f_status IN (64, 128, 192, 256, 320, 384, 448, 512)) AS m_active_attributed_run_count
    FROM
    (
        SELECT run_id AS f_run_id, pair AS f_pair, agent_id AS f_agent_id
        FROM attributions
        WHERE organization_id = {organization:String}
            AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
            AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
            AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    ) AS r
    ANY LEFT JOIN
    (
        SELECT run_id AS f_run_id, state AS run_state
        FROM runs FINAL
        WHERE organization_id = {organization:String}
            AND bitAnd(state, 63) != 63
            AND created_at >= fromUnixTimestamp64Milli(1766966400000, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli(1769990400000, 'UTC')
        UNION ALL
        SELECT run_id AS f_run_id, max(state) AS run_state
        FROM runs
        WHERE organization_id = {organization:String}
            AND bitAnd(state, 63) != 63
            AND run_hash IN
            (
                SELECT toUInt32(cityHash64(f_run_id)) AS f_run_hash
                FROM
                (
                    SELECT run_id AS f_run_id, pair AS f_pair, agent_id AS f_agent_id
                    FROM attributions
                    WHERE organization_id = {organization:String}
                        AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
                ) AS r
                WHERE identity(f_run_id) NOT IN
                    (
                        SELECT run_id
                        FROM runs FINAL
                        WHERE organization_id = {organization:String}
                            AND bitAnd(state, 63) != 63
                            AND created_at >= fromUnixTimestamp64Milli(1766966400000, 'UTC')
                            AND created_at <= fromUnixTimestamp64Milli(1769990400000, 'UTC')
                    )
            )
        GROUP BY run_id
    ) AS s USING (f_run_id)
    GROUP BY f_agent_id
) AS g
ANY LEFT JOIN
(
    SELECT
        agent_id AS a_agent_id,
        toNullable(tupleElement(latest, 'name')) AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
