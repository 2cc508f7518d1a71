-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}
SELECT
    toInt64(f_day) AS c0,
    toUInt64(m_run_count) AS c1
FROM
(
    SELECT
        f_day,
        sum(s_runs) AS m_run_count
    FROM
    (
        WITH
            toInt32(intDiv(quarter * 900000 + {offset_0:Int64} + 86400000000000, 86400000) - 1000000) AS f_day
        SELECT
            f_day,
            sum(runs) AS s_runs
        FROM rollup_runs
        WHERE organization_id = {organization:String}
            AND quarter >= {first_span:Int64}
            AND quarter < {after_span:Int64}
        GROUP BY f_day
        UNION ALL
        WITH
            toInt32(intDiv(toUnixTimestamp64Milli(created_at) + {offset_0:Int64} + 86400000000000, 86400000) - 1000000) AS f_day
        SELECT
            f_day,
            runs AS s_runs
        FROM changes
        WHERE asked
    ) AS r
    GROUP BY f_day
    HAVING sum(s_runs) > 0
) AS g
WHERE 1 NOT IN (SELECT throwIf(kind = 'lease' AND tupleElement(latest, 'number') > {log_lease:Int64} OR kind = 'damage' AND tupleElement(latest, 'number') > {log_damage:Int64} OR kind = 'begin' AND tupleElement(latest, 'number') > {log_begin:Int64}, 'the rollup log changed') FROM rollup_log)
ORDER BY c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- first_span = 1963584
-- after_span = 1966560
-- offset_0 = 0
-- log_begin = 7
-- log_lease = 5
-- log_damage = 3
-- limit = 101
