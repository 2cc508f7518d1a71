-- {"model":"agent_runs","metrics":["unique_initiator_count","run_count"],"dimensions":["day"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"Europe/Stockholm"}}
WITH
    texts_stored AS
    (
        WITH
            bitShiftRight(tupleElement(record, 'initiator'), 48) AS initiator,
            if(isNull(tupleElement(record, 'initiator_identifier')), NULL, tupleElement(record, 'initiator_name')) AS initiator_name
        SELECT DISTINCT
            organization_id,
            if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16))))) AS initiator_key,
            assumeNotNull(tupleElement(record, 'initiator_identifier')) AS initiator_identifier,
            initiator_name
        FROM runs
        WHERE organization_id = {organization:String}
            AND created_at >= fromUnixTimestamp64Milli(1738364400000, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli(1769900399999, 'UTC')
            AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
            AND isNotNull(tupleElement(record, 'initiator_identifier'))
    ),
    texts AS
    (
        SELECT
            initiator_key AS f_initiator_key,
            CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier,
            initiator_name AS f_user_name
        FROM initiator_keys
        WHERE organization_id = {organization:String}
        UNION ALL
        SELECT
            initiator_key AS f_initiator_key,
            CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier,
            initiator_name AS f_user_name
        FROM texts_stored
    )
SELECT
    toInt64(f_day) AS c0,
    toUInt64(m_unique_initiator_count) AS c1,
    toUInt64(m_run_count) AS c2
FROM
(
    SELECT
        f_day,
        countIf(s_runs > 0 AND f_initiator_day >= 512) AS m_unique_initiator_count,
        sum(s_runs) AS m_run_count
    FROM
    (
        SELECT
            f_initiator_day,
            toInt32(bitAnd(f_initiator_day, 511) + 1020056) AS f_day,
            sum(s_runs) AS s_runs
        FROM
        (
            WITH
                initiator_key AS f_initiator_key,
                toInt32(intDiv(quarter * 900000 + multiIf(quarter * 900000 < 1743296400000, 86400003600000, quarter * 900000 < 1761440400000, 86400007200000, 86400003600000), 86400000)) AS f_day,
                bitOr(bitAnd(toUInt64(bitShiftRight(f_initiator_key, 64)), 18446744073709551104), toUInt64(f_day - 1020056)) AS f_initiator_day
            SELECT f_initiator_day, runs AS s_runs
            FROM rollup_runs
            WHERE organization_id = {organization:String}
                AND indexHint(created_at >= fromUnixTimestamp64Milli(1738364400000, 'UTC') AND created_at <= fromUnixTimestamp64Milli(1769900399999, 'UTC'))
                AND quarter >= 1931516
                AND quarter < 1966556
            UNION ALL
            WITH
                if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16))))) AS f_initiator_key,
                toInt32(intDiv(toUnixTimestamp64Milli(created_at) + multiIf(toUnixTimestamp64Milli(created_at) < 1743296400000, 86400003600000, toUnixTimestamp64Milli(created_at) < 1761440400000, 86400007200000, 86400003600000), 86400000)) AS f_day,
                bitOr(bitAnd(toUInt64(bitShiftRight(f_initiator_key, 64)), 18446744073709551104), toUInt64(f_day - 1020056)) AS f_initiator_day
            SELECT f_initiator_day, if(bitAnd(state, 56) = 8, sign, 0) AS s_runs
            FROM
            (
                SELECT
                    created_at,
                    tupleElement(tupleElement(change, 1), 1) AS state,
                    tupleElement(tupleElement(change, 1), 2) AS agent_id,
                    tupleElement(tupleElement(change, 1), 3) AS initiator,
                    tupleElement(tupleElement(change, 1), 4) AS initiator_name,
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
                            tuple(tupleElement(record, 'state'), tupleElement(record, 'agent_id'), bitShiftRight(tupleElement(record, 'initiator'), 48), if(isNull(tupleElement(record, 'initiator_identifier')), NULL, tupleElement(record, 'initiator_name'))) AS record,
                            first_stored_at AS stored_at,
                            0 AS in_rollup
                        FROM runs
                        WHERE organization_id = {organization:String}
                            AND created_at >= fromUnixTimestamp64Milli(1738364400000, 'UTC')
                            AND created_at <= fromUnixTimestamp64Milli(1769900399999, 'UTC')
                            AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                        UNION ALL
                        SELECT
                            organization_id,
                            created_at,
                            run_id,
                            tuple(state, agent_id, bitShiftRight(initiator_key, 48), initiator_name) AS record,
                            first_stored_at,
                            1
                        FROM rollup_runs
                        WHERE organization_id = {organization:String}
                            AND created_at >= fromUnixTimestamp64Milli(1738364400000, 'UTC')
                            AND created_at <= fromUnixTimestamp64Milli(1769900399999, 'UTC')
                            AND created_at IN
                            (
                                SELECT created_at
                                FROM runs
                                WHERE organization_id = {organization:String}
                                    AND created_at >= fromUnixTimestamp64Milli(1738364400000, 'UTC')
                                    AND created_at <= fromUnixTimestamp64Milli(1769900399999, 'UTC')
                                    AND last_stored_at > fromUnixTimestamp64Milli(1769999940000, 'UTC')
                            )
                    )
                    GROUP BY organization_id, created_at, run_id
                )
                ARRAY JOIN if(was_in_rollup = 1, [(old_record, toInt8(-1), old_first), (new_record, toInt8(1), stored_first)], [(new_record, toInt8(1), stored_first)]) AS change
            )
            WHERE (sign = -1 OR first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC'))
        ) AS r
        GROUP BY f_initiator_day
    ) AS r
    WHERE NOT throwIf(1 IN
        (
            SELECT 1
            FROM shared_initiator_keys
            WHERE organization_id = {organization:String}
            UNION ALL
            SELECT 1
            FROM
            (
                SELECT organization_id, bitShiftRight(initiator_key, 48) AS initiator
                FROM
                (
                    SELECT organization_id, initiator_key, initiator_identifier, initiator_name
                    FROM initiator_keys
                    WHERE organization_id = {organization:String}
                        AND (organization_id, bitShiftRight(initiator_key, 48)) IN
                        (
                            SELECT organization_id, bitShiftRight(initiator_key, 48)
                            FROM texts_stored
                        )
                    UNION ALL
                    SELECT organization_id, initiator_key, initiator_identifier, initiator_name
                    FROM texts_stored
                )
                GROUP BY organization_id, initiator
                HAVING min(initiator_identifier) != max(initiator_identifier) OR uniqExact(initiator_name) + max(isNull(initiator_name)) > uniqExact(initiator_key)
            )
        ), 'initiator keys are shared')
        AND NOT throwIf(1 IN
        (
            SELECT
                uniqExact(bitShiftRight(f_initiator_key, 73)) < uniqExact(bitShiftRight(f_initiator_key, 48)) OR countIf(bitShiftRight(f_initiator_key, 73) = 0) > 0
            FROM texts
        ), 'initiator keys are shared')
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
