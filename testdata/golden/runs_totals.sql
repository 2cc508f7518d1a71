-- {"model":"agent_runs","metrics":["run_count","run_success_rate","unique_initiator_count"],"range":RANGE}
WITH
    bitAnd(bitShiftRight(state, 6), 15) AS f_status,
    tupleElement(initiator, 'initiator') AS f_initiator,
    count() AS m_run_count,
    countIf(f_status = 9) AS m_completed_run_count,
    countIf(f_status = 10) AS m_failed_run_count,
    uniqExactIf(f_initiator, f_initiator != 0) AS m_unique_initiator_count
SELECT
    toUInt64(m_run_count) AS c0,
    CAST(if(m_completed_run_count + m_failed_run_count = 0, NULL, m_completed_run_count / (m_completed_run_count + m_failed_run_count)), 'Nullable(Float64)') AS c1,
    toUInt64(m_unique_initiator_count) AS c2
FROM runs FINAL
WHERE organization_id = {organization:String}
    AND created_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
    AND created_at <= fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')
    AND first_stored_at <= fromUnixTimestamp64Milli({as_of_ms:Int64}, 'UTC')
    AND bitAnd(bitShiftRight(state, 3), 7) = 1

-- organization = acme
-- start_ms = 1767225600000
-- last_ms = 1769903999999
-- as_of_ms = 1770000000000
