-- {"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":{"start":"2025-02-01","end":"2026-01-30","timezone":"Asia/Tokyo"}}
SELECT m_attributed_run_count AS c0, m_completed_attributed_run_count AS c1
FROM
(
    WITH
        RECURSIVE hash_buckets AS
        (
            SELECT
                toUInt16(0) AS bucket,
                toUInt64(0) AS m_attributed_run_count,
                toUInt64(0) AS m_completed_attributed_run_count
            UNION ALL
            SELECT
                toUInt16(bucket + 1),
                c.m_attributed_run_count,
                c.m_completed_attributed_run_count
            FROM hash_buckets
            CROSS JOIN
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
                        FROM attributions
                        WHERE organization_id = {organization:String}
                            AND occurred_at >= fromUnixTimestamp64Milli(1738335600000, 'UTC')
                            AND occurred_at <= fromUnixTimestamp64Milli(1769785199999, 'UTC')
                            AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
                            AND toUInt16(toUInt32(cityHash64(run_id)) % 3) IN
                            (
                                SELECT bucket
                                FROM hash_buckets
                            )
                    ) AS r
                    LEFT JOIN
                    (
                        SELECT run_id AS f_run_id, state AS run_state
                        FROM runs
                        WHERE organization_id = {organization:String}
                            AND bitAnd(state, 63) != 63
                            AND toUInt16(run_hash % 3) IN
                            (
                                SELECT bucket
                                FROM hash_buckets
                            )
                    ) AS s USING (f_run_id)
                    GROUP BY f_pair
                ) AS p
            ) AS c
            WHERE bucket < 3
        )
    SELECT
        sum(m_attributed_run_count) AS m_attributed_run_count,
        sum(m_completed_attributed_run_count) AS m_completed_attributed_run_count
    FROM hash_buckets
) AS g

-- organization = acme
