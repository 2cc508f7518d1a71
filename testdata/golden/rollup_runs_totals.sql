-- {"model":"agent_runs","metrics":["run_count","run_success_rate"],"range":RANGE}
SELECT
    toUInt64(m_run_count) AS c0,
    m_completed_run_count / nullIf(m_completed_run_count + m_failed_run_count, 0) AS c1
FROM
(
    SELECT
        sum(s_runs) AS m_run_count,
        sum(s_completed) AS m_completed_run_count,
        sum(s_failed) AS m_failed_run_count
    FROM
    (
        SELECT sum(runs) AS s_runs, sum(completed) AS s_completed, sum(failed) AS s_failed
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND quarter >= 1963584
            AND quarter < 1966560
        UNION ALL
        SELECT
            if(bitAnd(state, 56) = 8, sign, 0) AS s_runs,
            if(bitAnd(state, 56) = 8 AND bitAnd(state, 960) = 576, sign, 0) AS s_completed,
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
                        AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
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
                                AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                        )
                )
                GROUP BY organization_id, created_at, run_id
            )
            ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
        )
        WHERE (sign = -1 OR first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC'))
    ) AS r
) AS g
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3, 'the rollup log changed')
        FROM rollup_log
    )

-- organization = acme
