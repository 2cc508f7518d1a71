-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier","user_type"],"filters":[{"member":"user_identifier","op":"in","values":["ada@example.com","cron"]}],"range":RANGE}
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
            AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
            AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
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
    f_user_identifier AS c0,
    n_user_name AS c1,
    nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') AS c2,
    toUInt64(m_run_count) AS c3
FROM
(
    SELECT
        f_user_identifier,
        f_user_type,
        if(isNull(f_user_identifier), NULL, maxIf(f_user_name, s_runs > 0)) AS n_user_name,
        sum(s_runs) AS m_run_count
    FROM
    (
        SELECT *
        FROM
        (
            SELECT f_initiator_key, f_user_type, sum(s_runs) AS s_runs
            FROM
            (
                WITH initiator_key AS f_initiator_key, user_type AS f_user_type
                SELECT f_initiator_key, f_user_type, runs AS s_runs
                FROM rollup_runs
                WHERE organization_id = {organization:String}
                    AND indexHint(created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC') AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC'))
                    AND quarter >= 1963584
                    AND quarter < 1966560
                    AND f_initiator_key IN
                    (
                        SELECT f_initiator_key
                        FROM texts
                        WHERE f_user_identifier IN {filter_0:Array(String)}
                    )
                UNION ALL
                WITH
                    if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48), toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16))))) AS f_initiator_key,
                    toUInt8(bitAnd(state, 7)) AS f_user_type
                SELECT f_initiator_key, f_user_type, if(bitAnd(state, 56) = 8, sign, 0) AS s_runs
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
                                AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
                                AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
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
                    AND f_initiator_key IN
                    (
                        SELECT f_initiator_key
                        FROM texts
                        WHERE f_user_identifier IN {filter_0:Array(String)}
                    )
            ) AS r
            GROUP BY f_initiator_key, f_user_type
        ) AS r
        ANY LEFT JOIN texts AS t USING (f_initiator_key)
        WHERE NOT throwIf(f_initiator_key != 0 AND isNull(f_user_identifier), 'initiator keys are shared')
            AND (((f_user_identifier > {after_0:String} OR isNull(f_user_identifier))))
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
    GROUP BY f_user_identifier, f_user_type
    HAVING sum(s_runs) > 0
) AS g
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3, 'the rollup log changed')
        FROM rollup_log
    )
ORDER BY c0 ASC NULLS LAST, c2 ASC NULLS LAST
LIMIT 101

-- organization = acme
-- filter_0 = [ada@example.com cron]
-- after_0 = ada@example.com
