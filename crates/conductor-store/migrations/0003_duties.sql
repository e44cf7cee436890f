-- What one of several processes does for all, and until when; and words that all processes must agree on.

CREATE TABLE duties (
    name TEXT PRIMARY KEY NOT NULL,
    worker TEXT NOT NULL,
    held_until BIGINT NOT NULL
);

CREATE TABLE marks (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
