-- {"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":RANGE}
SELECT m_attributed_run_count AS c0, m_completed_attributed_run_count AS c1
FROM
(
    SELECT
        count() AS m_attributed_run_count,
        countIf(f_status = 576) AS m_completed_attributed_run_count
    FROM
    (
        SELECT f_pair, bitAnd(max(run_state), 960) AS f_status
        FROM
        (
            SELECT pair AS f_pair, run_id AS f_run_id
            FROM attributions FINAL
            WHERE organization_id = {organization:String}
                AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
                AND identity((occurred_at, attribution_id)) NOT IN
                (
                    SELECT clock, id
                    FROM conflicting_records
                    WHERE organization_id = {organization:String}
                        AND kind = 'attribution'
                        AND superseded
                )
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
