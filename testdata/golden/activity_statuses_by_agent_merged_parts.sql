-- {"model":"agent_user_activity","metrics":["completed_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}
SELECT
    CAST(toString(f_agent_id), 'Nullable(String)') AS c0,
    a_agent_name AS c1,
    toUInt64(m_completed_attributed_run_count) AS c2
FROM
(
    WITH
        bitAnd(bitShiftRight(greatest(run_state, newer_state), 6), 15) AS f_status
    SELECT
        f_agent_id,
        uniqExactIf(f_pair, f_status = 9) AS m_completed_attributed_run_count
    FROM
    (
        SELECT
            run_id AS f_run_id,
            pair AS f_pair,
            agent_id AS f_agent_id
        FROM attributions
        WHERE organization_id = {organization:String}
            AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
            AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
            AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
    ) AS r
    ANY LEFT JOIN
    (
        SELECT run_id AS f_run_id, state AS run_state
        FROM runs
        WHERE organization_id = {organization:String}
            AND bitAnd(state, 63) != 63
            AND created_at >= fromUnixTimestamp64Milli({window_start_ms:Int64}, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli({window_last_ms:Int64}, 'UTC')
            AND _part IN {merged_parts:Array(String)}
        UNION ALL
        SELECT run_id AS f_run_id, max(state) AS run_state
        FROM runs
        WHERE organization_id = {organization:String}
            AND bitAnd(state, 63) != 63
            AND if(toUInt16(run_hash) IN
            (
                SELECT toUInt16(run_hash)
                FROM
                (
                    SELECT run_hash
                    FROM runs_outside_window
                    UNION ALL
                    SELECT toUInt32(cityHash64(run_id))
                    FROM attributions
                    WHERE organization_id = {organization:String}
                        AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
                        AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
                        AND first_stored_at > fromUnixTimestamp64Milli({outside_ms:Int64}, 'UTC')
                )
            ), run_hash, 0) IN
            (
                SELECT run_hash
                FROM runs_outside_window
                UNION ALL
                SELECT toUInt32(cityHash64(run_id))
                FROM attributions
                WHERE organization_id = {organization:String}
                    AND occurred_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
                    AND occurred_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
                    AND first_stored_at > fromUnixTimestamp64Milli({outside_ms:Int64}, 'UTC')
            )
        GROUP BY run_id
    ) AS s USING (f_run_id)
    ANY LEFT JOIN
    (
        SELECT run_id AS f_run_id, max(state) AS newer_state
        FROM runs
        WHERE organization_id = {organization:String}
            AND bitAnd(state, 63) != 63
            AND created_at >= fromUnixTimestamp64Milli({window_start_ms:Int64}, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli({window_last_ms:Int64}, 'UTC')
            AND _part NOT IN {merged_parts:Array(String)}
        GROUP BY run_id
    ) AS v USING (f_run_id)
    GROUP BY f_agent_id
) AS g
ANY LEFT JOIN
(
    SELECT agent_id AS a_agent_id, CAST(tupleElement(latest, 'name'), 'Nullable(String)') AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
-- merged_parts = [202601_1_9_2]
-- window_start_ms = 1766966400000
-- window_last_ms = 1769990400000
-- outside_ms = 1769999940000
-- limit = 101
