-- {"model":"agent_runs","metrics":["run_count","run_success_rate","unique_initiator_count"],"range":RANGE}
WITH
    bitAnd(state, 960) AS f_status,
    tupleElement(initiator, 'initiator') AS f_initiator,
    count() AS m_run_count,
    countIf(f_status = 576) AS m_completed_run_count,
    countIf(f_status = 640) AS m_failed_run_count,
    uniqExactIf(f_initiator, f_initiator != 0) AS m_unique_initiator_count
SELECT
    m_run_count AS c0,
    m_completed_run_count / nullIf(m_completed_run_count + m_failed_run_count, 0) AS c1,
    m_unique_initiator_count AS c2
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli(1767225600000, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli(1769903999999, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli(1770000000000, 'UTC')
    AND bitAnd(state, 56) = 8

-- organization = acme
