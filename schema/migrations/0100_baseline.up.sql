-- The tables of runlens. Every statement may be run again: it changes nothing where the table exists.
-- DESIGN.md says what each table is for. Tables with fsync settings keep what they acknowledged when power is lost.

-- Agents, one row a version. The greatest tuple, the newest version, wins a merge.
CREATE TABLE IF NOT EXISTS agents
(
    organization_id LowCardinality(String),
    agent_id        UUID,

    -- Sent by an insert, kept in latest.
    name       String EPHEMERAL '',
    slug       Nullable(String) EPHEMERAL NULL,
    deleted_at Nullable(DateTime64(3, 'UTC')) EPHEMERAL NULL,
    updated_at DateTime64(3, 'UTC') EPHEMERAL toDateTime64(0, 3, 'UTC'),

    latest SimpleAggregateFunction(max, Tuple(
        updated_at DateTime64(3, 'UTC'),
        deleted_at Nullable(DateTime64(3, 'UTC')),
        slug       Nullable(String),
        name       String
    )) DEFAULT (updated_at, deleted_at, slug, name)
)
ENGINE = AggregatingMergeTree
ORDER BY (organization_id, agent_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Runs, one row a version. Each tuple begins with state, whose highest bits are the version: a merge keeps the newest
-- version in every column, and the earliest first_stored_at. Narrow tuples repeat what most queries read of record.
CREATE TABLE IF NOT EXISTS runs
(
    organization_id LowCardinality(String),
    created_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run_id          UUID,

    -- Sent by an insert, kept in the tuples below.
    agent_id             UUID EPHEMERAL toUUID('00000000-0000-0000-0000-000000000000'),
    kind                 Enum8('agent' = 1, 'sub_agent' = 2, 'browser' = 3, 'phone' = 4, 'inbound_phone' = 5,
                               'platform' = 6) EPHEMERAL 'agent',
    parent_run_id        Nullable(UUID) EPHEMERAL NULL,
    status               Enum8('PENDING' = 1, 'RUNNING' = 2, 'WAITING_FOR_SLOT' = 3, 'CANCELLING' = 4,
                               'AWAITING_REPLY' = 5, 'SLEEPING' = 6, 'PAUSING' = 7, 'PAUSED' = 8, 'COMPLETED' = 9,
                               'FAILED' = 10, 'CANCELLED' = 11) EPHEMERAL 'PENDING',
    initiator_identifier Nullable(String) EPHEMERAL NULL,
    initiator_name       Nullable(String) EPHEMERAL NULL,
    initiator_type       Nullable(Enum8('internal' = 1, 'external' = 2, 'automated' = 3, 'unknown' = 4)) EPHEMERAL NULL,
    updated_at           DateTime64(3, 'UTC') EPHEMERAL toDateTime64(0, 3, 'UTC'),

    first_stored_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    last_stored_at  SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT first_stored_at CODEC(Delta, ZSTD(1)),

    -- From the lowest bit: 3 of the initiator's type, 3 of the kind, 4 of the status, then the version.
    state     SimpleAggregateFunction(max, UInt64) DEFAULT bitOr(
        bitShiftLeft(toUInt64(toUnixTimestamp64Milli(updated_at) + 2208988800000), 10),
        toUInt64(64 * toUInt8(status) + 8 * toUInt8(kind) + ifNull(toUInt8(initiator_type), 0))),
    agent     SimpleAggregateFunction(max, Tuple(state UInt64, agent_id UUID)) DEFAULT (state, agent_id),
    initiator SimpleAggregateFunction(max, Tuple(state UInt64, agent_id UUID, initiator UInt128)) DEFAULT
        (tupleElement(record, 'state'), tupleElement(record, 'agent_id'), tupleElement(record, 'initiator')),
    record    SimpleAggregateFunction(max, Tuple(
        state                UInt64,
        agent_id             UUID,
        initiator            UInt128,
        initiator_identifier Nullable(String),
        initiator_name       Nullable(String),
        parent_run_id        Nullable(UUID)
    )) DEFAULT (
        state, agent_id,
        if(isNull(initiator_identifier), toUInt128(0),
            reinterpretAsUInt128(sipHash128(assumeNotNull(initiator_identifier)))),
        initiator_identifier, initiator_name, parent_run_id),

    run_hash UInt32 MATERIALIZED toUInt32(cityHash64(run_id)) CODEC(NONE),

    PROJECTION by_last_stored_at
    (
        SELECT last_stored_at, organization_id, created_at, run_id, first_stored_at, record
        ORDER BY last_stored_at
    ) WITH SETTINGS (index_granularity = 256)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(created_at)
ORDER BY (organization_id, created_at, run_id)
SETTINGS index_granularity = 512, deduplicate_merge_projection_mode = 'rebuild',
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Attribution records, which never change: of several rows with one key the first stored wins. inverted_timestamp is
-- the greater the earlier a row was stored; its lower half, a hash of the content, decides within a millisecond.
CREATE TABLE IF NOT EXISTS attributions
(
    organization_id LowCardinality(String),
    occurred_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    attribution_id  UUID,

    run_id              UUID,
    agent_id            UUID,
    user_identifier     String,
    user_domain         LowCardinality(Nullable(String)) MATERIALIZED
        if(position(user_identifier, '@') = 0, NULL, arrayElement(splitByChar('@', user_identifier), -1)),
    user_name           Nullable(String),
    activity_type       Enum8('initiated' = 1, 'associated' = 2, 'interacted' = 3),
    run_initiation_type Enum8('human' = 1, 'automated' = 2, 'unknown' = 3),
    source              LowCardinality(String),

    first_stored_at    DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    inverted_timestamp UInt128 MATERIALIZED bitOr(
        bitShiftLeft(toUInt128(toUInt64(18446744073709551615 - toUnixTimestamp64Milli(first_stored_at))), 64),
        toUInt128(cityHash64(
            tuple(run_id, agent_id, user_identifier, user_name, activity_type, run_initiation_type, source))))
        CODEC(ZSTD(1)),

    -- A person and a run as one number; a hash of the key, to find an id whatever its clock.
    pair             UInt128 MATERIALIZED reinterpretAsUInt128(sipHash128(user_identifier, run_id)) CODEC(NONE),
    attribution_hash UInt32 MATERIALIZED toUInt32(cityHash64(attribution_id)) CODEC(NONE),

    PROJECTION by_person
    (
        SELECT organization_id, occurred_at, attribution_id, run_id, agent_id, user_identifier, user_domain, user_name,
            activity_type, run_initiation_type, source, first_stored_at, pair
        ORDER BY organization_id, user_identifier, occurred_at
    ),
    PROJECTION by_first_stored_at
    (
        SELECT first_stored_at, organization_id, occurred_at, attribution_id, agent_id, activity_type,
            inverted_timestamp
        ORDER BY first_stored_at
    ) WITH SETTINGS (index_granularity = 256)
)
ENGINE = ReplacingMergeTree(inverted_timestamp)
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (organization_id, occurred_at, attribution_id)
SETTINGS index_granularity = 512, deduplicate_merge_projection_mode = 'rebuild',
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Records that the source stored under several clocks or with several contents; superseded keys do not count.
CREATE TABLE IF NOT EXISTS conflicting_records
(
    organization_id LowCardinality(String),
    kind            Enum8('run' = 1, 'attribution' = 2),
    id              UUID,
    clock           DateTime64(3, 'UTC'),
    superseded      Bool
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, kind, id, clock, superseded)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- The rollup of runs: the current row of every run with the sign 1; where a run changed, its former row again with -1.
CREATE TABLE IF NOT EXISTS rollup_runs
(
    organization_id LowCardinality(String),
    created_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    run_id          UUID,
    state           UInt64 CODEC(Delta, ZSTD(1)),
    agent_id        UUID,
    initiator       UInt128 EPHEMERAL 0,
    initiator_name  Nullable(String),
    initiator_key   UInt128 DEFAULT if(initiator = 0, toUInt128(0), bitOr(bitShiftLeft(initiator, 48),
        toUInt128(if(isNull(initiator_name), 0, bitShiftRight(cityHash64(ifNull(initiator_name, '')), 16))))),
    first_stored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    sign            Int8,

    -- Spans of time since 1970; the shift makes the division round down before that.
    quarter Int32 MATERIALIZED
        toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2208988800000, 900000) - 2454432) CODEC(Delta, ZSTD(1)),
    hour Int32 MATERIALIZED
        toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2208988800000, 3600000) - 613608) CODEC(Delta, ZSTD(1)),
    week Int32 MATERIALIZED
        toInt32(intDiv(toUnixTimestamp64Milli(created_at) + 2209334400000, 604800000) - 3653) CODEC(Delta, ZSTD(1)),

    user_type UInt8 MATERIALIZED bitAnd(state, 7),
    runs      Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 3), 7) = 1, sign, 0),
    completed Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 9, runs, 0),
    failed    Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 10, runs, 0),
    cancelled Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) = 11, runs, 0),
    active    Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 6), 15) BETWEEN 1 AND 8, runs, 0),

    PROJECTION by_quarter
    (
        SELECT organization_id, quarter, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, quarter
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_agent
    (
        SELECT organization_id, hour, agent_id, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, hour, agent_id
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_user_type
    (
        SELECT organization_id, quarter, user_type, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, quarter, user_type
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_initiator_key
    (
        SELECT organization_id, week, initiator_key, sum(runs), sum(completed), sum(failed), sum(cancelled), sum(active)
        GROUP BY organization_id, week, initiator_key
    ) WITH SETTINGS (index_granularity = 1024)
)
ENGINE = CollapsingMergeTree(sign)
PARTITION BY toYear(created_at) * 10 + toQuarter(created_at)
ORDER BY (organization_id, created_at, run_id, state, agent_id, initiator_key)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384,
    deduplicate_merge_projection_mode = 'rebuild',
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- The rollup of attribution records, likewise.
CREATE TABLE IF NOT EXISTS rollup_attributions
(
    organization_id LowCardinality(String),
    occurred_at     DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    attribution_id  UUID,
    agent_id        UUID,
    activity_type   Enum8('initiated' = 1, 'associated' = 2, 'interacted' = 3),
    first_stored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    sign            Int8,

    quarter Int32 MATERIALIZED
        toInt32(intDiv(toUnixTimestamp64Milli(occurred_at) + 2208988800000, 900000) - 2454432) CODEC(Delta, ZSTD(1)),
    hour Int32 MATERIALIZED
        toInt32(intDiv(toUnixTimestamp64Milli(occurred_at) + 2208988800000, 3600000) - 613608) CODEC(Delta, ZSTD(1)),

    records    Int8 MATERIALIZED sign,
    interacted Int8 MATERIALIZED if(activity_type = 'interacted', sign, 0),

    PROJECTION by_quarter
    (
        SELECT organization_id, quarter, sum(records), sum(interacted)
        GROUP BY organization_id, quarter
    ) WITH SETTINGS (index_granularity = 1024),
    PROJECTION by_agent
    (
        SELECT organization_id, hour, agent_id, sum(records), sum(interacted)
        GROUP BY organization_id, hour, agent_id
    ) WITH SETTINGS (index_granularity = 1024)
)
ENGINE = CollapsingMergeTree(sign)
PARTITION BY toYear(occurred_at) * 10 + toQuarter(occurred_at)
ORDER BY (organization_id, occurred_at, attribution_id, agent_id, activity_type)
SETTINGS index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384,
    deduplicate_merge_projection_mode = 'rebuild',
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- The texts of the initiator keys of rollup_runs.
CREATE TABLE IF NOT EXISTS initiator_keys
(
    organization_id      LowCardinality(String),
    initiator_key        UInt128,
    initiator_identifier String,
    initiator_name       Nullable(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, initiator_key, initiator_identifier, initiator_name)
SETTINGS allow_nullable_key = 1,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Keys of more than one text, by the identifier's part of the key.
CREATE TABLE IF NOT EXISTS shared_initiator_keys
(
    organization_id LowCardinality(String),
    initiator       UInt128
)
ENGINE = ReplacingMergeTree
ORDER BY (organization_id, initiator)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- The progress of refreshes, the newest entry of each kind. value is the watermark of a commit, in Unix milliseconds
-- and inverted, so that of two the earlier one wins; of a begin or a lease the random name of its process.
CREATE TABLE IF NOT EXISTS rollup_log
(
    kind            Enum8('begin' = 1, 'commit' = 2, 'lease' = 3, 'damage' = 4),
    organization_id String DEFAULT '',
    source          Enum8('' = 0, 'runs' = 1, 'attributions' = 2) DEFAULT '',
    latest          SimpleAggregateFunction(max, Tuple(number UInt64, value Int64, recorded_at DateTime64(3, 'UTC')))
)
ENGINE = AggregatingMergeTree
ORDER BY (kind, organization_id, source)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- How many rows were ever inserted, counted before an insert is acknowledged: they say whether anything changed since a
-- server read them. Rows may be lost with the power.
CREATE TABLE IF NOT EXISTS insert_counters
(
    source          Enum8('runs' = 1, 'attributions' = 2, 'rollup_log' = 3, 'agents' = 4,
                          'conflicting_records' = 5, 'alterations' = 6),
    organization_id String,
    rows            SimpleAggregateFunction(sum, UInt64),
    last_stored_at  SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (source, organization_id);

CREATE MATERIALIZED VIEW IF NOT EXISTS count_inserted_runs TO insert_counters AS
SELECT 'runs' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM runs
GROUP BY organization_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_inserted_attributions TO insert_counters AS
SELECT 'attributions' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM attributions
GROUP BY organization_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_inserted_agents TO insert_counters AS
SELECT 'agents' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM agents
GROUP BY organization_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_conflicting_records TO insert_counters AS
SELECT 'conflicting_records' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM conflicting_records
GROUP BY organization_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_alterations TO insert_counters AS
SELECT 'alterations' AS source, organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM rollup_log
WHERE kind IN ('lease', 'damage')
GROUP BY organization_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS count_rollup_log TO insert_counters AS
SELECT 'rollup_log' AS source, '' AS organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at
FROM rollup_log;

-- API keys. A revocation wins over an expiry, an earlier end over a later one. Looking a key up compares verification.
CREATE TABLE IF NOT EXISTS api_keys
(
    key_id          String,
    organization_id LowCardinality(String),
    name            String,
    scopes          Array(String),
    secret_hash     FixedString(32),
    created_at      DateTime64(3, 'UTC'),
    revoked_at      Nullable(DateTime64(3, 'UTC')),
    expires_at      Nullable(DateTime64(3, 'UTC')),
    networks        Array(String),

    revision UInt64 MATERIALIZED multiIf(
        isNotNull(revoked_at), bitShiftLeft(toUInt64(3), 62) -
            toUInt64(greatest(toUnixTimestamp64Milli(assumeNotNull(revoked_at)), 0)),
        isNotNull(expires_at), bitShiftLeft(toUInt64(1), 62) -
            toUInt64(greatest(toUnixTimestamp64Milli(assumeNotNull(expires_at)), 0)),
        toUInt64(0)),
    verification String MATERIALIZED if(isNotNull(revoked_at), '', concat(
        secret_hash, organization_id, '\n',
        arrayStringConcat(scopes, ','), '\n',
        arrayStringConcat(networks, ','), '\n',
        ifNull(toString(toUnixTimestamp64Milli(expires_at)), '')))
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY key_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- When a key last verified, to about an hour. A row may be lost with the power.
CREATE TABLE IF NOT EXISTS api_key_uses
(
    key_id       String,
    last_used_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY key_id;

-- Secrets that servers share: those of cursors.
CREATE TABLE IF NOT EXISTS secrets
(
    name       LowCardinality(String),
    value      String,
    created_at DateTime64(9, 'UTC') DEFAULT now64(9, 'UTC')
)
ENGINE = MergeTree
ORDER BY (name, created_at, value)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Who did what to keys and records.
CREATE TABLE IF NOT EXISTS audit_log
(
    organization_id LowCardinality(String),
    at              DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
    action_id       UUID,
    outcome         Enum8('begun' = 1, 'done' = 2, 'failed' = 3),
    action          LowCardinality(String),
    key_id          String,
    actor           String,
    details         String
)
ENGINE = MergeTree
ORDER BY (organization_id, at, action_id, outcome)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What was asked over the API, by the shape of the question and never a filter's value (olap/usage). A part is dropped
-- when the newest row of its week is 90 days old. Rows may be lost with the power: they are figures for operators.
CREATE TABLE IF NOT EXISTS usage_log
(
    organization_id LowCardinality(String),
    at              DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    key_id          LowCardinality(String),

    -- More than 1 where equal refusals that have no shape are one row.
    questions UInt32,
    code      LowCardinality(String), -- of the refusal; empty for an answer
    limit_hit LowCardinality(String),

    model      LowCardinality(String),
    metrics    Array(LowCardinality(String)),
    dimensions Array(LowCardinality(String)),
    filters    Array(LowCardinality(String)), -- member and operator
    days       UInt16,
    timezone   LowCardinality(String),
    row_limit  UInt16,

    returned_rows UInt16,
    rows_read     UInt64,
    bytes_read    UInt64,
    processor_us  Nullable(UInt64), -- NULL where ClickHouse did not report it
    took_us       UInt64
)
ENGINE = MergeTree
PARTITION BY toMonday(at)
ORDER BY (organization_id, at)
TTL toDateTime(at) + INTERVAL 90 DAY
SETTINGS ttl_only_drop_parts = 1;

-- How far copying has come, by source.
CREATE TABLE IF NOT EXISTS checkpoints
(
    name     String,
    position String,
    revision UInt64,
    saved_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY name
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What a purge in progress takes out, so that no statement names anyone; dropped with its partition when it is done.
CREATE TABLE IF NOT EXISTS purge_targets
(
    purge UInt64,
    kind  Enum8('organization' = 1, 'identifier' = 2, 'run' = 3, 'name' = 4, 'record' = 5),
    key   String
)
ENGINE = MergeTree
PARTITION BY purge
ORDER BY (kind, key)
SETTINGS old_parts_lifetime = 0,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- Records that a worker is replacing by what the source has, until that is stored.
CREATE TABLE IF NOT EXISTS replacements
(
    replacement     UInt64,
    source          String,
    organization_id LowCardinality(String),
    kind            Enum8('agent' = 1, 'run' = 2, 'attribution' = 3),
    id              UUID
)
ENGINE = MergeTree
PARTITION BY replacement
ORDER BY (source, organization_id, kind, id)
SETTINGS old_parts_lifetime = 0,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
