-- {"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}
SELECT toInt64(f_day) AS c0, toUInt64(m_interaction_count) AS c1
FROM
(
    SELECT f_day, sum(s_interacted) AS m_interaction_count
    FROM
    (
        WITH toInt32(intDiv(quarter * 900000 + 86400000000000, 86400000)) AS f_day
        SELECT f_day, sum(records) AS s_records, sum(interacted) AS s_interacted
        FROM rollup_attributions
        WHERE organization_id = {organization:String}
            AND quarter >= 1963584
            AND quarter < 1966560
        GROUP BY f_day
        UNION ALL
        WITH
            toInt32(intDiv(toUnixTimestamp64Milli(occurred_at) + 86400000000000, 86400000)) AS f_day
        SELECT
            f_day,
            sign AS s_records,
            if(activity_type = 'interacted', sign, 0) AS s_interacted
        FROM
        (
            SELECT
                occurred_at,
                tupleElement(tupleElement(change, 1), 2) AS activity_type,
                tupleElement(change, 3) AS first_stored_at,
                tupleElement(change, 2) AS sign
            FROM
            (
                SELECT
                    organization_id,
                    occurred_at,
                    attribution_id,
                    max(record) AS new_record,
                    maxIf(record, in_rollup) AS old_record,
                    max(in_rollup) AS was_in_rollup,
                    min(stored_at) AS stored_first,
                    minIf(stored_at, in_rollup) AS old_first
                FROM
                (
                    SELECT
                        organization_id,
                        occurred_at,
                        attribution_id,
                        tuple(inverted_timestamp, activity_type) AS record,
                        first_stored_at AS stored_at,
                        0 AS in_rollup
                    FROM attributions
                    WHERE organization_id = {organization:String}
                        AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND first_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC') AND inverted_timestamp != 0
                    UNION ALL
                    SELECT
                        organization_id,
                        occurred_at,
                        attribution_id,
                        tuple(bitOr(bitShiftLeft(toUInt128(toUInt64(18446744073709551615 - toUnixTimestamp64Milli(first_stored_at))), 64), 18446744073709551615), activity_type) AS record,
                        first_stored_at,
                        1
                    FROM rollup_attributions
                    WHERE organization_id = {organization:String}
                        AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                        AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                        AND occurred_at IN
                        (
                            SELECT occurred_at
                            FROM attributions
                            WHERE organization_id = {organization:String}
                                AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                                AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
                                AND first_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC') AND inverted_timestamp != 0
                        )
                )
                GROUP BY organization_id, occurred_at, attribution_id
            )
            ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
        )
        WHERE (sign = -1 OR first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC'))
    ) AS r
    GROUP BY f_day
    HAVING sum(s_records) > 0
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
