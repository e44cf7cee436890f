-- What opens the door to people: the hashes of one-time links and sessions, and of passwords. No secret stands here.

CREATE TABLE door_keys (
    hash TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    is_owner SMALLINT NOT NULL,
    holder TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);

CREATE INDEX door_keys_by_holder ON door_keys (holder);
CREATE INDEX door_keys_by_end ON door_keys (ends_at);

CREATE TABLE passwords (
    operator TEXT PRIMARY KEY NOT NULL,
    hash TEXT NOT NULL
);
