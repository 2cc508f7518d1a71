-- {"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier","user_type"],"order":[{"member":"user_type","direction":"desc"}],"range":RANGE}
WITH
    tupleElement(record, 'initiator_identifier') AS f_user_identifier,
    tupleElement(record, 'initiator_name') AS f_user_name,
    bitAnd(state, 7) AS f_user_type,
    if(isNull(f_user_identifier), NULL, max(f_user_name)) AS n_user_name,
    count() AS m_run_count
SELECT
    CAST(f_user_identifier, 'Nullable(String)') AS c0,
    CAST(n_user_name, 'Nullable(String)') AS c1,
    CAST(nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), ''), 'Nullable(String)') AS c2,
    toUInt64(m_run_count) AS c3
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
    AND bitAnd(bitShiftRight(state, 3), 7) = 1
    AND (((nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') < {after_0:String} OR isNull(nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '')))))
GROUP BY f_user_identifier, f_user_type
ORDER BY c2 DESC NULLS LAST, c0 ASC NULLS LAST
LIMIT {limit:Int64}

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
-- after_0 = internal
-- limit = 101
