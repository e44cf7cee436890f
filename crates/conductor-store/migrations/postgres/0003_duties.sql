-- What one of several processes does for all, and until when; and words that all processes must agree on.

CREATE TABLE duties (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    worker TEXT COLLATE "C" NOT NULL,
    held_until BIGINT NOT NULL
);

CREATE TABLE marks (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    value TEXT COLLATE "C" NOT NULL
);
