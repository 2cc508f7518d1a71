-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier"],"range":RANGE}
WITH
    texts AS
    (
        SELECT
            initiator_key AS f_initiator_key,
            CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier,
            initiator_name AS f_user_name
        FROM initiator_keys
        WHERE organization_id = {organization:String}
    )
SELECT f_user_identifier AS c0, n_user_name AS c1, toUInt64(m_run_count) AS c2
FROM
(
    SELECT
        f_user_identifier,
        if(isNull(f_user_identifier), NULL, maxIf(f_user_name, s_runs > 0)) AS n_user_name,
        sum(s_runs) AS m_run_count
    FROM
    (
        SELECT *
        FROM
        (
            SELECT f_initiator_key, sum(s_runs) AS s_runs
            FROM
            (
                WITH initiator_key AS f_initiator_key
                SELECT f_initiator_key, runs AS s_runs
                FROM rollup_runs
                WHERE organization_id = {organization:String}
                    AND indexHint(created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC') AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC'))
                    AND quarter >= 1963584
                    AND quarter < 1966560
            ) AS r
            GROUP BY f_initiator_key
        ) AS r
        ANY LEFT JOIN texts AS t USING (f_initiator_key)
        WHERE NOT throwIf(f_initiator_key != 0 AND isNull(f_user_identifier), 'initiator keys are shared')
    ) AS r
    WHERE NOT throwIf(1 IN
        (
            SELECT 1
            FROM shared_initiator_keys
            WHERE organization_id = {organization:String}
        ), 'initiator keys are shared')
    GROUP BY f_user_identifier
    HAVING sum(s_runs) > 0
) AS g
WHERE 1 NOT IN
    (
        SELECT
            throwIf(kind = 'lease' AND tupleElement(latest, 'number') > 5 OR kind = 'damage' AND tupleElement(latest, 'number') > 3 OR kind = 'begin' AND tupleElement(latest, 'number') > 7, 'the rollup log changed')
        FROM rollup_log
    )
ORDER BY c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
