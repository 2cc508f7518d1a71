-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier","user_type"],"order":[{"member":"user_type","direction":"desc"}],"range":RANGE}
WITH
    tupleElement(record, 'initiator_identifier') AS f_user_identifier,
    tupleElement(record, 'initiator_name') AS f_user_name,
    bitAnd(state, 7) AS f_user_type,
    if(isNull(f_user_identifier), NULL, max(f_user_name)) AS n_user_name,
    count() AS m_run_count
SELECT
    f_user_identifier AS c0,
    n_user_name AS c1,
    nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') AS c2,
    m_run_count AS c3
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    AND bitAnd(state, 56) = 8
    AND (((nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') < {after_0:String} OR isNull(nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '')))))
GROUP BY f_user_identifier, f_user_type
ORDER BY c2 DESC NULLS LAST, c0 ASC NULLS LAST
LIMIT 101

-- organization = acme
-- after_0 = internal
