-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}
SELECT toInt64(f_day) AS c0, toUInt64(m_run_count) AS c1
FROM
(
    SELECT f_day, sum(s_runs) AS m_run_count
    FROM
    (
        WITH toInt32(intDiv(quarter * 900000 + 86400000000000, 86400000)) AS f_day
        SELECT f_day, runs AS s_runs
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND indexHint(created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC') AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC'))
            AND quarter >= 1963584
            AND quarter < 1966560
            AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
        UNION ALL
        WITH
            toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 86400000000000, 86400000)) AS f_day
        SELECT f_day, if(bitAnd(state, 56) = 8, sign, 0) AS s_runs
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
                        AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND last_stored_at > fromUnixTimestamp64Milli(1770000060000, 'UTC')
                    UNION ALL
                    SELECT organization_id, created_at, run_id, tuple(state) AS record, first_stored_at, 1
                    FROM rollup_runs
                    WHERE organization_id = {organization:String}
                        AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND created_at IN
                        (
                            SELECT created_at
                            FROM runs
                            WHERE organization_id = {organization:String}
                                AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                                AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                                AND last_stored_at > fromUnixTimestamp64Milli(1770000060000, 'UTC')
                        )
                )
                GROUP BY organization_id, created_at, run_id
            )
            ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
        )
        WHERE first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
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
