-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_type"],"range":RANGE}
WITH toUnixTimestamp64Milli(now64(3)) AS as_of_ms
SELECT
    CAST(nullIf(transform(g.f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), ''), 'Nullable(String)') AS c0,
    toUInt64(m_run_count) AS c1,
    as_of_ms
FROM
(
    SELECT
        f_user_type,
        count() AS m_run_count
    FROM
    (
        SELECT
            bitAnd(state, 7) AS f_user_type
        FROM runs FINAL
        WHERE organization_id = {organization:String}
            AND created_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
            AND first_stored_at <= fromUnixTimestamp64Milli(as_of_ms, 'UTC')
            AND bitAnd(bitShiftRight(state, 3), 7) = 1
    ) AS r
    GROUP BY f_user_type
) AS g
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- limit = 101
