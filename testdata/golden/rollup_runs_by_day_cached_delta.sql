-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}
SELECT toInt64(f_day) AS c0, toUInt64(m_run_count) AS c1
FROM
(
    SELECT f_day, sum(s_runs) AS m_run_count
    FROM
    (
        WITH toInt32(intDiv(quarter * 900000 + 86400000000000, 86400000)) AS f_day
        SELECT f_day, sum(runs) AS s_runs
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND quarter >= 1963584
            AND quarter < 1966560
        GROUP BY f_day
        UNION ALL
        WITH
            toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 86400000000000, 86400000)) AS f_day
        SELECT f_day, runs AS s_runs
        FROM changes
        WHERE asked
    ) AS r
    GROUP BY f_day
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
