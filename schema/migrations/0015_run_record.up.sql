ALTER TABLE runs ADD COLUMN IF NOT EXISTS
    record SimpleAggregateFunction(max, Tuple(
        state                UInt64,
        agent_id             UUID,
        initiator            UInt128,
        initiator_identifier Nullable(String),
        initiator_name       Nullable(String),
        parent_run_id        Nullable(UUID)
    )) DEFAULT (
        tupleElement(latest, 'state'),
        tupleElement(latest, 'agent_id'),
        if(isNull(tupleElement(latest, 'initiator_identifier')), 0, reinterpretAsUInt128(sipHash128(assumeNotNull(tupleElement(latest, 'initiator_identifier'))))),
        tupleElement(latest, 'initiator_identifier'),
        tupleElement(latest, 'initiator_name'),
        tupleElement(latest, 'parent_run_id'))
