-- Answers to writes that named themselves, so that a write that is sent twice is done once. The name is a hash.

CREATE TABLE answers (
    name TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    begun_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    status BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL
);

CREATE INDEX answers_by_end ON answers (ends_at);
