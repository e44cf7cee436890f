-- Records are kept for ever; effects until done and after, as history; runs and instance can be rebuilt from records.

CREATE TABLE records (
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    event_id TEXT NOT NULL UNIQUE,
    schema_version BIGINT NOT NULL,
    class TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    actor TEXT NOT NULL,
    cause TEXT NOT NULL,
    at BIGINT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (stream, seq)
);

CREATE TABLE seen_inputs (
    dedupe_key TEXT PRIMARY KEY NOT NULL,
    stream TEXT NOT NULL
);

-- `attempts` counts the leases and is the fencing token. `seq` and `ordinal` are the order within the asking stream.
CREATE TABLE effects (
    id TEXT PRIMARY KEY NOT NULL,
    run TEXT NOT NULL,
    repo BIGINT NOT NULL,
    kind TEXT NOT NULL,
    work SMALLINT NOT NULL,
    payload TEXT NOT NULL,
    priority SMALLINT NOT NULL,
    not_before BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'leased', 'done')),
    attempts BIGINT NOT NULL,
    stop SMALLINT NOT NULL,
    worker TEXT,
    lease_until BIGINT
);

CREATE INDEX effects_open ON effects (status, not_before) WHERE status <> 'done';
CREATE INDEX effects_by_run ON effects (run, seq, ordinal);

CREATE TABLE slots (
    repo BIGINT NOT NULL,
    slot_no BIGINT NOT NULL,
    run TEXT NOT NULL UNIQUE,
    UNIQUE (repo, slot_no)
);

CREATE TABLE runs (
    run TEXT PRIMARY KEY NOT NULL,
    project TEXT NOT NULL,
    repo BIGINT NOT NULL,
    repo_name TEXT NOT NULL,
    issue BIGINT NOT NULL,
    title TEXT NOT NULL,
    phase TEXT NOT NULL,
    held SMALLINT NOT NULL,
    needs_human SMALLINT NOT NULL,
    terminal SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    pull_request BIGINT,
    deadline BIGINT,
    state TEXT NOT NULL,
    seq BIGINT NOT NULL,
    head TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX runs_by_age ON runs (created_at, run);
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX runs_by_pull_request ON runs (repo, pull_request) WHERE pull_request IS NOT NULL;

CREATE TABLE instance (
    id BIGINT PRIMARY KEY NOT NULL CHECK (id = 1),
    state TEXT NOT NULL
);

CREATE TABLE forge_writes (
    effect TEXT PRIMARY KEY NOT NULL,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    target TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    decision TEXT NOT NULL,
    reason TEXT NOT NULL,
    result TEXT NOT NULL,
    at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    ordinal BIGINT NOT NULL
);

CREATE INDEX forge_writes_by_run ON forge_writes (run, seq, ordinal);

CREATE TABLE tool_calls (
    invocation TEXT NOT NULL,
    run TEXT NOT NULL,
    n BIGINT NOT NULL,
    tool TEXT NOT NULL,
    target TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    decision TEXT NOT NULL,
    reason TEXT NOT NULL,
    result TEXT NOT NULL,
    at BIGINT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (invocation, n)
);

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    bytes BLOB NOT NULL
);

CREATE TABLE resource_leases (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    taken_at BIGINT NOT NULL,
    heartbeat BIGINT NOT NULL,
    UNIQUE (kind, name)
);

CREATE INDEX resource_leases_by_run ON resource_leases (run);
