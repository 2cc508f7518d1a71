-- The default layout of an operational database, as `runlens worker` reads it. Other columns and
-- tables do not matter; other layouts are read with a mapping file (--mapping).
--
-- updated_at is the clock of changes: the database sets it at every insert and update, and nothing
-- sets it back. The indexes make polling cheap.

CREATE TABLE agents (
    organization_id text        NOT NULL,
    agent_id        uuid        NOT NULL,
    name            text        NOT NULL,
    slug            text,
    deleted_at      timestamptz,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, agent_id)
);
CREATE INDEX agents_changes ON agents (updated_at, agent_id);

CREATE TABLE runs (
    organization_id      text        NOT NULL,
    run_id               uuid        NOT NULL,
    agent_id             uuid        NOT NULL,
    kind                 text        NOT NULL DEFAULT 'agent',
    parent_run_id        uuid,
    status               text        NOT NULL,
    initiator_identifier text,
    initiator_name       text,
    initiator_type       text,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, run_id)
);
CREATE INDEX runs_changes ON runs (updated_at, run_id);

CREATE TABLE attributions (
    organization_id     text        NOT NULL,
    attribution_id      uuid        NOT NULL,
    run_id              uuid        NOT NULL,
    agent_id            uuid        NOT NULL,
    user_identifier     text        NOT NULL,
    user_name           text,
    activity_type       text        NOT NULL,
    run_initiation_type text        NOT NULL,
    source              text        NOT NULL,
    occurred_at         timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, attribution_id)
);
CREATE INDEX attributions_changes ON attributions (updated_at, attribution_id);
