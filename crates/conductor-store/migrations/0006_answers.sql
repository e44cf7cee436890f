-- Answers to writes that named themselves, so that a write that is sent twice is done once. The name is a hash.

CREATE TABLE answers (
    name TEXT PRIMARY KEY NOT NULL,
    request TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    status BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX answers_by_end ON answers (ends_at);
