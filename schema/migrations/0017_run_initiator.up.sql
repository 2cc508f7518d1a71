ALTER TABLE runs ADD COLUMN IF NOT EXISTS
    initiator SimpleAggregateFunction(max, Tuple(
        state     UInt64,
        agent_id  UUID,
        initiator UInt128
    )) DEFAULT (tupleElement(record, 'state'), tupleElement(record, 'agent_id'), tupleElement(record, 'initiator'))
