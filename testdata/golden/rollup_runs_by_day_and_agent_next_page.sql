-- {"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day","agent_id"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}
SELECT
    toInt64(f_day) AS c0,
    toString(f_agent_id) AS c1,
    a_agent_name AS c2,
    toUInt64(m_run_count) AS c3,
    toUInt64(m_active_run_count) AS c4
FROM
(
    SELECT
        f_day,
        f_agent_id,
        sum(s_runs) AS m_run_count,
        sum(s_active) AS m_active_run_count
    FROM
    (
        WITH
            agent_id AS f_agent_id,
            toInt32(intDiv(hour * 3600000 + multiIf(hour * 3600000 < 1774746000000, 86400003600000, hour * 3600000 < 1792890000000, 86400007200000, 86400003600000), 86400000)) AS f_day
        SELECT f_day, f_agent_id, sum(runs) AS s_runs, sum(active) AS s_active
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND hour >= 492311
            AND hour < 498191
            AND (((f_day > 1020600 OR isNull(f_day))) OR (f_day = 1020600 AND (toString(f_agent_id) > {after_1:String} OR isNull(toString(f_agent_id)))))
        GROUP BY f_day, f_agent_id
        UNION ALL
        WITH
            agent_id AS f_agent_id,
            toInt32(intDiv(toUnixTimestamp64Milli(created_at) + multiIf(toUnixTimestamp64Milli(created_at) < 1774746000000, 86400003600000, toUnixTimestamp64Milli(created_at) < 1792890000000, 86400007200000, 86400003600000), 86400000)) AS f_day
        SELECT
            f_day,
            f_agent_id,
            if(bitAnd(state, 56) = 8, sign, 0) AS s_runs,
            if(bitAnd(state, 56) = 8 AND bitAnd(state, 960) BETWEEN 64 AND 512, sign, 0) AS s_active
        FROM
        (
            SELECT
                created_at,
                tupleElement(tupleElement(change, 1), 1) AS state,
                tupleElement(tupleElement(change, 1), 2) AS agent_id,
                tupleElement(change, 3) AS first_stored_at,
                tupleElement(change, 2) AS sign
            FROM
            (
                SELECT
                    organization_id,
                    created_at,
                    run_id,
                    max(record) AS new_record,
                    maxIf(record, in_rollup) AS old_record,
                    max(in_rollup) AS was_in_rollup,
                    min(stored_at) AS stored_first,
                    minIf(stored_at, in_rollup) AS old_first
                FROM
                (
                    SELECT
                        organization_id,
                        created_at,
                        run_id,
                        tuple(tupleElement(record, 'state'), tupleElement(record, 'agent_id')) AS record,
                        first_stored_at AS stored_at,
                        0 AS in_rollup
                    FROM runs
                    WHERE organization_id = {organization:String}
                        AND created_at >= fromUnixTimestamp64Milli(1772319600000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1793487599999, 'UTC')
                        AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                    UNION ALL
                    SELECT
                        organization_id,
                        created_at,
                        run_id,
                        tuple(state, agent_id) AS record,
                        first_stored_at,
                        1
                    FROM rollup_runs
                    WHERE organization_id = {organization:String}
                        AND created_at >= fromUnixTimestamp64Milli(1772319600000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1793487599999, 'UTC')
                        AND created_at IN
                        (
                            SELECT created_at
                            FROM runs
                            WHERE organization_id = {organization:String}
                                AND created_at >= fromUnixTimestamp64Milli(1772319600000, 'UTC')
                                AND created_at <= fromUnixTimestamp64Milli(1793487599999, 'UTC')
                                AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                        )
                )
                GROUP BY organization_id, created_at, run_id
            )
            ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
        )
        WHERE (sign = -1 OR first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC'))
            AND (((f_day > 1020600 OR isNull(f_day))) OR (f_day = 1020600 AND (toString(f_agent_id) > {after_1:String} OR isNull(toString(f_agent_id)))))
    ) AS r
    GROUP BY f_day, f_agent_id
    HAVING sum(s_runs) > 0
) AS g
ANY LEFT JOIN
(
    SELECT
        agent_id AS a_agent_id,
        toNullable(tupleElement(latest, 'name')) AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3, 'the rollup log changed')
        FROM rollup_log
    )
ORDER BY c0 ASC NULLS LAST, c1 ASC NULLS LAST
LIMIT 101

-- organization = acme
-- after_1 = 0b7e4d2c-0000-4000-8000-000000000001
