-- {"model":"agent_user_activity","metrics":["attributed_run_count"],"dimensions":["agent_id","user_identifier","user_domain","activity_type","run_initiation_type","source","day"],"range":RANGE}
SELECT
    toString(f_agent_id) AS c0,
    a_agent_name AS c1,
    f_user_identifier AS c2,
    n_user_name AS c3,
    f_user_domain AS c4,
    toString(f_activity_type) AS c5,
    toString(f_run_initiation_type) AS c6,
    f_source AS c7,
    f_day AS c8,
    m_attributed_run_count AS c9
FROM
(
    WITH
        pair AS f_pair,
        agent_id AS f_agent_id,
        user_identifier AS f_user_identifier,
        user_name AS f_user_name,
        user_domain AS f_user_domain,
        activity_type AS f_activity_type,
        run_initiation_type AS f_run_initiation_type,
        source AS f_source,
        intDiv(toUnixTimestamp64Milli(occurred_at) + 86400000000000, 86400000) AS f_day
    SELECT
        f_agent_id,
        f_user_identifier,
        f_user_domain,
        f_activity_type,
        f_run_initiation_type,
        f_source,
        f_day,
        if(isNull(f_user_identifier), NULL, max(f_user_name)) AS n_user_name,
        uniqExact(f_pair) AS m_attributed_run_count
    FROM attributions
    WHERE organization_id = {organization:String}
        AND occurred_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
        AND occurred_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
        AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    GROUP BY f_agent_id, f_user_identifier, f_user_domain, f_activity_type, f_run_initiation_type, f_source, f_day
) AS g
ANY LEFT JOIN
(
    SELECT
        agent_id AS a_agent_id,
        toNullable(tupleElement(latest, 'name')) AS a_agent_name
    FROM agents FINAL
    WHERE organization_id = {organization:String}
) AS a ON a.a_agent_id = g.f_agent_id
ORDER BY c0 ASC NULLS LAST, c2 ASC NULLS LAST, c4 ASC NULLS LAST, c5 ASC NULLS LAST, c6 ASC NULLS LAST, c7 ASC NULLS LAST, c8 ASC NULLS LAST
LIMIT 101

-- organization = acme
