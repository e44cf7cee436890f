-- Records are kept for ever; effects until done and after, as history; runs and instance can be rebuilt from records.
-- Text is ordered by its bytes, as everywhere else, and not by the words of a language.

CREATE TABLE records (
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL UNIQUE,
    schema_version BIGINT NOT NULL,
    class TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    payload_hash TEXT COLLATE "C" NOT NULL,
    actor_type TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    cause TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    UNIQUE (stream, seq)
);

CREATE TABLE seen_inputs (
    dedupe_key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    stream TEXT COLLATE "C" NOT NULL
);

-- `attempts` counts the leases and is the fencing token. `seq` and `ordinal` are the order within the asking stream.
CREATE TABLE effects (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    repo BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    work SMALLINT NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    priority SMALLINT NOT NULL,
    not_before BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'leased', 'done')),
    attempts BIGINT NOT NULL,
    stop SMALLINT NOT NULL,
    worker TEXT COLLATE "C",
    lease_until BIGINT
);

CREATE INDEX effects_open ON effects (status, not_before) WHERE status <> 'done';
CREATE INDEX effects_by_run ON effects (run, seq, ordinal);

CREATE TABLE slots (
    repo BIGINT NOT NULL,
    slot_no BIGINT NOT NULL,
    run TEXT COLLATE "C" NOT NULL UNIQUE,
    UNIQUE (repo, slot_no)
);

CREATE TABLE runs (
    run TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    repo BIGINT NOT NULL,
    repo_name TEXT COLLATE "C" NOT NULL,
    issue BIGINT NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    phase TEXT COLLATE "C" NOT NULL,
    held SMALLINT NOT NULL,
    needs_human SMALLINT NOT NULL,
    terminal SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    pull_request BIGINT,
    deadline BIGINT,
    state TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    head TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX runs_by_age ON runs (created_at, run);
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX runs_by_pull_request ON runs (repo, pull_request) WHERE pull_request IS NOT NULL;

CREATE TABLE instance (
    id BIGINT PRIMARY KEY NOT NULL CHECK (id = 1),
    state TEXT COLLATE "C" NOT NULL
);

CREATE TABLE forge_writes (
    effect TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    actor_type TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    payload_hash TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    ordinal BIGINT NOT NULL
);

CREATE INDEX forge_writes_by_run ON forge_writes (run, seq, ordinal);

CREATE TABLE tool_calls (
    invocation TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    payload_hash TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    UNIQUE (invocation, n)
);

CREATE TABLE blobs (
    digest TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    bytes BYTEA NOT NULL
);

CREATE TABLE resource_leases (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    taken_at BIGINT NOT NULL,
    heartbeat BIGINT NOT NULL,
    UNIQUE (kind, name)
);

CREATE INDEX resource_leases_by_run ON resource_leases (run);
