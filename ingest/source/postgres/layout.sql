-- The default layout of an operational database, as `runlens worker` reads it. Other columns and
-- tables do not matter; other layouts are read with a mapping file (--mapping).
--
-- updated_at is the clock of changes and the version of a row: the database sets it at every insert and
-- update, whatever the statement says, and never sets it back. Versions differ by the millisecond, so
-- each is later than the one before by one at least. Polling needs the indexes on (updated_at, id).

CREATE FUNCTION runlens_set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    IF TG_OP = 'UPDATE' AND isfinite(OLD.updated_at) THEN
        NEW.updated_at := greatest(NEW.updated_at, OLD.updated_at + interval '1 millisecond');
    END IF;
    RETURN NEW;
END
$$;

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
CREATE TRIGGER agents_set_updated_at BEFORE INSERT OR UPDATE ON agents
    FOR EACH ROW EXECUTE FUNCTION runlens_set_updated_at();

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
CREATE TRIGGER runs_set_updated_at BEFORE INSERT OR UPDATE ON runs
    FOR EACH ROW EXECUTE FUNCTION runlens_set_updated_at();

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
CREATE TRIGGER attributions_set_updated_at BEFORE INSERT OR UPDATE ON attributions
    FOR EACH ROW EXECUTE FUNCTION runlens_set_updated_at();
