-- {"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["day"],"filters":[{"member":"user_type","op":"eq","value":"internal"}],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"Asia/Kathmandu"}}
SELECT toInt64(f_day) AS c0, toUInt64(m_failed_run_count) AS c1
FROM
(
    SELECT f_day, sum(s_failed) AS m_failed_run_count
    FROM
    (
        WITH
            user_type AS f_user_type,
            toInt32(intDiv(quarter * 900000 + 86400020700000, 86400000)) AS f_day
        SELECT f_day, sum(runs) AS s_runs, sum(failed) AS s_failed
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND quarter >= 1963561
            AND quarter < 1966537
            AND nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') IN {filter_0:Array(String)}
        GROUP BY f_day
        UNION ALL
        WITH
            toUInt8(bitAnd(state, 7)) AS f_user_type,
            toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 86400020700000, 86400000)) AS f_day
        SELECT
            f_day,
            if(bitAnd(state, 56) = 8, sign, 0) AS s_runs,
            if(bitAnd(state, 56) = 8 AND bitAnd(state, 960) = 640, sign, 0) AS s_failed
        FROM
        (
            SELECT
                created_at,
                tupleElement(tupleElement(change, 1), 1) AS state,
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
                        tuple(tupleElement(record, 'state')) AS record,
                        first_stored_at AS stored_at,
                        0 AS in_rollup
                    FROM runs
                    WHERE organization_id = {organization:String}
                        AND created_at >= fromUnixTimestamp64Milli(1767204900000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1769883299999, 'UTC')
                        AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                    UNION ALL
                    SELECT organization_id, created_at, run_id, tuple(state) AS record, first_stored_at, 1
                    FROM rollup_runs
                    WHERE organization_id = {organization:String}
                        AND created_at >= fromUnixTimestamp64Milli(1767204900000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1769883299999, 'UTC')
                        AND created_at IN
                        (
                            SELECT created_at
                            FROM runs
                            WHERE organization_id = {organization:String}
                                AND created_at >= fromUnixTimestamp64Milli(1767204900000, 'UTC')
                                AND created_at <= fromUnixTimestamp64Milli(1769883299999, 'UTC')
                                AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                        )
                )
                GROUP BY organization_id, created_at, run_id
            )
            ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
        )
        WHERE (sign = -1 OR first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC'))
            AND nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') IN {filter_0:Array(String)}
    ) AS r
    GROUP BY f_day
    HAVING sum(s_runs) > 0
) AS g
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3, 'the rollup log changed')
        FROM rollup_log
    )
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
-- filter_0 = [internal]
