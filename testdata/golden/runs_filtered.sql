-- {"model":"agent_runs","metrics":["run_count"],"filters":[{"member":"agent_id","op":"in","values":["support","0B7E4D2C-0000-4000-8000-000000000001"]},{"member":"user_identifier","op":"eq","value":"Ada@Example.com"},{"member":"user_type","op":"eq","value":"internal"},{"member":"day","op":"in","values":["2026-01-02","2026-01-05"]}],"range":RANGE}
WITH
    tupleElement(agent, 'agent_id') AS f_agent_id,
    tupleElement(record, 'initiator_identifier') AS f_user_identifier,
    bitAnd(state, 7) AS f_user_type,
    intDiv(toUnixTimestamp64Milli(created_at) + 86400000000000, 86400000) AS f_day,
    count() AS m_run_count
SELECT m_run_count AS c0
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    AND bitAnd(state, 56) = 8
    AND (f_agent_id IN {filter_0_ids:Array(UUID)} OR f_agent_id IN
    (
        SELECT
            argMax(agent_id, (isNull(tupleElement(latest, 'deleted_at')), ifNull(tupleElement(latest, 'deleted_at'), tupleElement(latest, 'updated_at')), tupleElement(latest, 'updated_at'), agent_id))
        FROM agents FINAL
        WHERE organization_id = {organization:String}
            AND tupleElement(latest, 'slug') IN {filter_0_slugs:Array(String)}
        GROUP BY tupleElement(latest, 'slug')
    ))
    AND f_user_identifier IN {filter_1:Array(String)}
    AND nullIf(transform(f_user_type, [1, 2, 3, 4], ['internal', 'external', 'automated', 'unknown'], ''), '') IN {filter_2:Array(String)}
    AND f_day IN {filter_3:Array(Int64)}

-- organization = acme
-- filter_0_ids = [0b7e4d2c-0000-4000-8000-000000000001]
-- filter_0_slugs = [support 0B7E4D2C-0000-4000-8000-000000000001]
-- filter_1 = [ada@example.com]
-- filter_2 = [internal]
-- filter_3 = [1020455 1020458]
