//! Every statement of the store, as one text that SQLite and PostgreSQL both understand.
//!
//! Ids are TEXT, times BIGINT (microseconds), JSON is TEXT, flags are SMALLINT, parameters `$1`. The few statements
//! that must differ are chosen in `conn.rs`; the one that finds runs is put together in `runs.rs`, by what is asked for. This
//! module does not know how they are run.

/// What makes an effect `e` of run `r` dispatchable at `$1`. Used for listing and, within the leasing transaction,
/// again: a hold or a later retry that was kept in between wins.
macro_rules! is_ready {
    () => {
        "((e.status = 'pending' AND e.not_before <= $1 AND \
         (e.stop = 1 OR e.work = 0 OR COALESCE(r.held, 0) = 0)) \
         OR (e.status = 'leased' AND e.lease_until < $1))"
    };
}

macro_rules! record_columns {
    () => {
        "stream, seq, event_id, schema_version, class, kind, payload, payload_hash, actor_type, actor, cause, at, hash"
    };
}

macro_rules! effect_columns {
    () => {
        "e.id, e.run, e.repo, e.kind, e.payload, e.status, e.attempts, e.stop, e.created_at"
    };
}

macro_rules! run_columns {
    () => {
        "run, project, repo, repo_name, issue, title, phase, held, needs_human, terminal, cleaned_up, priority, \
         pull_request, deadline, state, seq, head, created_at, updated_at, figures, ended_at"
    };
}

macro_rules! write_columns {
    () => {
        "effect, run, kind, actor_type, target, payload_hash, decision, reason, result, at"
    };
}

macro_rules! call_columns {
    () => {
        "invocation, run, n, tool, target, payload_hash, decision, reason, result, at, hash"
    };
}

// Streams.

pub(super) const HEAD: &str = "SELECT COALESCE(MAX(seq), 0) FROM records WHERE stream = $1";

pub(super) const INSERT_RECORD: &str = concat!(
    "INSERT INTO records (",
    record_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
);

/// A page of records as one value: a row of sqlx costs far more than a record, and replay reads nothing else.
/// One of those that must differ.
pub(super) const PAGE_OF_RECORDS: &str = concat!(
    "SELECT json_group_array(json_array(",
    record_columns!(),
    ")) FROM (SELECT ",
    record_columns!(),
    " FROM records WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3)"
);

/// The same for PostgreSQL.
pub(super) const PAGE_OF_RECORDS_POSTGRES: &str = concat!(
    "SELECT CAST(COALESCE(json_agg(json_build_array(",
    record_columns!(),
    ")), '[]') AS TEXT) FROM (SELECT ",
    record_columns!(),
    " FROM records WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3) page"
);

pub(super) const HEADS: &str = "SELECT r.stream, r.seq, r.hash FROM records r \
    JOIN (SELECT stream, MAX(seq) AS seq FROM records GROUP BY stream) last \
    ON last.stream = r.stream AND last.seq = r.seq ORDER BY r.stream";

pub(super) const INSERT_SEEN: &str =
    "INSERT INTO seen_inputs (dedupe_key, stream) VALUES ($1, $2) ON CONFLICT (dedupe_key) DO NOTHING";

// Effects.

pub(super) const INSERT_EFFECT: &str = "INSERT INTO effects \
    (id, run, repo, kind, work, payload, priority, not_before, created_at, seq, ordinal, status, attempts, stop) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', 0, 0)";

pub(super) const SETTLE: &str = "UPDATE effects SET status = 'done', worker = NULL, lease_until = NULL \
    WHERE id = $1 AND status = 'leased' AND attempts = $2";

pub(super) const EFFECT_STATUS: &str = "SELECT status FROM effects WHERE id = $1";

/// Who was told to stop stays told: a merge, for one, is not begun again after that.
pub(super) const RETRY: &str = "UPDATE effects SET status = 'pending', not_before = $2 WHERE id = $1";

/// What nobody has begun is over. What was tried may have had its way in the world: somebody has to find out, at once.
pub(super) const STOP: &str = "UPDATE effects SET stop = 1, not_before = 0, \
    status = CASE WHEN status = 'pending' AND attempts = 0 THEN 'done' ELSE status END \
    WHERE id = $1 AND status <> 'done'";

pub(super) const REPRIORITIZE: &str =
    "UPDATE effects SET priority = $2 WHERE run = $1 AND status = 'pending'";

pub(super) const DISPATCHABLE: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effects e LEFT JOIN runs r ON r.run = e.run WHERE e.status <> 'done' AND ",
    is_ready!(),
    " AND (CAST($3 AS TEXT) IS NULL OR (-e.priority, e.created_at, e.run, e.seq, e.ordinal) > \
     (SELECT -b.priority, b.created_at, b.run, b.seq, b.ordinal FROM effects b WHERE b.id = $3)) \
     ORDER BY e.priority DESC, e.created_at, e.run, e.seq, e.ordinal LIMIT $2"
);

pub(super) const READY_EFFECT: &str = concat!(
    "SELECT e.run, e.attempts FROM effects e LEFT JOIN runs r ON r.run = e.run WHERE e.id = $2 AND ",
    is_ready!()
);

pub(super) const LEASE: &str = "UPDATE effects SET status = 'leased', attempts = attempts + 1, worker = $3, \
    lease_until = $4 WHERE id = $1 AND attempts = $2";

pub(super) const HELD_EFFECT: &str =
    "SELECT 1 FROM effects WHERE id = $1 AND status = 'leased' AND attempts = $2";

pub(super) const RENEW: &str = "UPDATE effects SET lease_until = $3 \
    WHERE id = $1 AND status = 'leased' AND attempts = $2 RETURNING stop";

pub(super) const END_LEASES: &str =
    "UPDATE effects SET lease_until = 0 WHERE status = 'leased' AND worker = $1";

pub(super) const EFFECTS_OF_RUN: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effects e WHERE e.run = $1 ORDER BY e.seq, e.ordinal"
);

// Slots.

pub(super) const SLOT_OF_RUN: &str = "SELECT repo FROM slots WHERE run = $1";

pub(super) const SLOTS_OF_REPO: &str = "SELECT slot_no FROM slots WHERE repo = $1 ORDER BY slot_no";

pub(super) const TAKE_SLOT: &str = "INSERT INTO slots (repo, slot_no, run) VALUES ($1, $2, $3)";

pub(super) const FREE_SLOT: &str = "DELETE FROM slots WHERE run = $1";

// Issues.

pub(super) const TAKE_ISSUE: &str =
    "INSERT INTO open_issues (repo, issue, run) VALUES ($1, $2, $3) ON CONFLICT (repo, issue) DO NOTHING";

pub(super) const ISSUE_HOLDER: &str = "SELECT run FROM open_issues WHERE repo = $1 AND issue = $2";

pub(super) const GIVE_BACK_ISSUE: &str = "DELETE FROM open_issues WHERE run = $1";

// Projections.

pub(super) const UPSERT_INSTANCE: &str = "INSERT INTO instance (id, state, seq, head) VALUES (1, $1, $2, $3) \
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, seq = excluded.seq, head = excluded.head";

pub(super) const UPSERT_RUN: &str = concat!(
    "INSERT INTO runs (",
    run_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
     $21) ON CONFLICT (run) DO UPDATE SET project = excluded.project, repo = excluded.repo, \
     repo_name = excluded.repo_name, issue = excluded.issue, title = excluded.title, phase = excluded.phase, \
     held = excluded.held, needs_human = excluded.needs_human, terminal = excluded.terminal, \
     cleaned_up = excluded.cleaned_up, priority = excluded.priority, pull_request = excluded.pull_request, deadline = excluded.deadline, \
     state = excluded.state, seq = excluded.seq, head = excluded.head, created_at = excluded.created_at, \
     updated_at = excluded.updated_at, figures = excluded.figures, ended_at = excluded.ended_at"
);

pub(super) const CLEAR_INSTANCE: &str = "DELETE FROM instance";

pub(super) const CLEAR_RUNS: &str = "DELETE FROM runs";

pub(super) const CLEAR_WRITES: &str = "DELETE FROM forge_writes";

pub(super) const INSTANCE: &str = "SELECT state, seq, head FROM instance WHERE id = 1";

pub(super) const RUN: &str = concat!("SELECT ", run_columns!(), " FROM runs WHERE run = $1");

/// How the statement begins that `runs.rs` puts together.
pub(super) const ALL_RUNS: &str = concat!("SELECT ", run_columns!(), " FROM runs");

macro_rules! took {
    () => {
        "SELECT created_at, phase, figures FROM runs WHERE ((created_at >= $1 AND created_at < $2) \
         OR (ended_at >= $1 AND ended_at < $2)) AND (CAST($3 AS TEXT) IS NULL OR project = $3) \
         AND (CAST($4 AS BIGINT) IS NULL OR repo = $4)"
    };
}

/// What runs took, as one value. One of those that must differ.
pub(super) const RUNS_TOOK: &str = concat!(
    "SELECT json_group_array(json_array(created_at, phase, figures)) FROM (",
    took!(),
    ")"
);

/// The same for PostgreSQL.
pub(super) const RUNS_TOOK_POSTGRES: &str = concat!(
    "SELECT CAST(COALESCE(json_agg(json_build_array(created_at, phase, figures)), '[]') AS TEXT) FROM (",
    took!(),
    ") took"
);

pub(super) const DUE: &str = "SELECT run FROM runs WHERE deadline <= $1 ORDER BY deadline, run LIMIT $2";

// Writes at the forge. `seq` and `ordinal` stay those of the first: they are the order in which writes were asked for.

pub(super) const UPSERT_WRITE: &str = concat!(
    "INSERT INTO forge_writes (",
    write_columns!(),
    ", seq, ordinal) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
     ON CONFLICT (effect) DO UPDATE SET run = excluded.run, kind = excluded.kind, actor_type = excluded.actor_type, \
     target = excluded.target, payload_hash = excluded.payload_hash, decision = excluded.decision, \
     reason = excluded.reason, result = excluded.result, at = excluded.at"
);

pub(super) const WRITES_OF_RUN: &str = concat!(
    "SELECT ",
    write_columns!(),
    " FROM forge_writes WHERE run = $1 ORDER BY seq, ordinal"
);

// Blobs, tool calls, resources.

pub(super) const PUT_BLOB: &str =
    "INSERT INTO blobs (digest, kind, bytes) VALUES ($1, $2, $3) ON CONFLICT (digest) DO NOTHING";

pub(super) const GET_BLOB: &str = "SELECT bytes FROM blobs WHERE digest = $1";

pub(super) const LIST_BLOBS: &str =
    "SELECT digest, bytes FROM blobs WHERE digest > $1 ORDER BY digest LIMIT $2";

pub(super) const INSERT_CALL: &str = concat!(
    "INSERT INTO tool_calls (",
    call_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (invocation, n) DO NOTHING"
);

pub(super) const CALLS: &str = concat!(
    "SELECT ",
    call_columns!(),
    " FROM tool_calls WHERE invocation = $1 ORDER BY n"
);

pub(super) const PAGE_OF_CALLS: &str = concat!(
    "SELECT ",
    call_columns!(),
    " FROM tool_calls WHERE invocation = $1 AND (CAST($2 AS BIGINT) IS NULL OR n < $2) \
     AND ($3 = 0 OR decision <> 'allow') ORDER BY n DESC LIMIT $4"
);

pub(super) const TAKE_RESOURCE: &str = "INSERT INTO resource_leases (kind, name, run, taken_at, heartbeat) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (kind, name) DO UPDATE SET heartbeat = excluded.heartbeat \
    WHERE resource_leases.run = excluded.run";

pub(super) const GIVE_BACK_RESOURCE: &str =
    "DELETE FROM resource_leases WHERE run = $1 AND kind = $2 AND name = $3";

pub(super) const HELD_RESOURCES: &str = "SELECT kind, name, run, taken_at, heartbeat FROM resource_leases \
    WHERE (CAST($1 AS TEXT) IS NULL OR run = $1) ORDER BY run, kind, name";

// Duties and marks.

pub(super) const HOLD_DUTY: &str = "INSERT INTO duties (name, worker, held_until) VALUES ($1, $2, $4) \
    ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, held_until = excluded.held_until \
    WHERE duties.worker = excluded.worker OR duties.held_until < $3";

pub(super) const LAY_DOWN_DUTY: &str = "DELETE FROM duties WHERE name = $1 AND worker = $2";

pub(super) const PUT_MARK: &str =
    "INSERT INTO marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

/// Puts a mark over the one that stands there.
pub(super) const SET_MARK: &str =
    "INSERT INTO marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

pub(super) const MARKS: &str = "SELECT name, value FROM marks";

pub(super) const MARK: &str = "SELECT value FROM marks WHERE name = $1";

pub(super) const FORGET_KEYS: &str = "DELETE FROM door_keys WHERE ends_at <= $1";

pub(super) const KEEP_KEY: &str = "INSERT INTO door_keys (hash, kind, is_owner, holder, ends_at, since) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (hash) DO UPDATE SET ends_at = excluded.ends_at \
    WHERE door_keys.ends_at < excluded.ends_at";

/// Changes a row even where the later time stands there already, so that the number of rows tells whether the key does.
pub(super) const LENGTHEN_KEY: &str = "UPDATE door_keys \
    SET ends_at = CASE WHEN ends_at < $3 THEN $3 ELSE ends_at END WHERE hash = $1 AND kind = $2";

pub(super) const FIND_KEY: &str =
    "SELECT is_owner, holder, ends_at, since FROM door_keys WHERE hash = $1 AND kind = $2 AND ends_at > $3";

pub(super) const TAKE_KEY: &str =
    "DELETE FROM door_keys WHERE hash = $1 AND kind = $2 RETURNING is_owner, holder, ends_at, since";

pub(super) const TAKE_ALL_KEYS: &str = "DELETE FROM door_keys WHERE holder = $1 AND is_owner = 0";

pub(super) const TAKE_OWNERS_KEYS: &str = "DELETE FROM door_keys WHERE is_owner = 1";

pub(super) const SET_PASSWORD: &str = "INSERT INTO passwords (operator, hash) VALUES ($1, $2) \
    ON CONFLICT (operator) DO UPDATE SET hash = excluded.hash";

pub(super) const FORGET_PASSWORD: &str = "DELETE FROM passwords WHERE operator = $1";

pub(super) const PASSWORD: &str = "SELECT hash FROM passwords WHERE operator = $1";

pub(super) const FORGET_ANSWERS: &str = "DELETE FROM answers WHERE ends_at <= $1";

pub(super) const BEGIN_ANSWER: &str = "INSERT INTO answers (name, request, begun_at, ends_at, status, kind, body) \
    VALUES ($1, $2, $3, $4, 0, '', '') ON CONFLICT (name) DO NOTHING";

pub(super) const BEGIN_ANSWER_AGAIN: &str = "UPDATE answers SET begun_at = $2, ends_at = $4 \
    WHERE name = $1 AND status = 0 AND begun_at < $3";

pub(super) const MAKE_ROOM_FOR_ANSWERS: &str = "DELETE FROM answers WHERE ends_at < \
    (SELECT ends_at FROM answers ORDER BY ends_at DESC LIMIT 1 OFFSET $1)";

pub(super) const ANSWER: &str = "SELECT request, status, kind, body FROM answers WHERE name = $1";

pub(super) const KEEP_ANSWER: &str = "UPDATE answers SET status = $2, kind = $3, body = $4 WHERE name = $1";

pub(super) const FORGET_ANSWER: &str = "DELETE FROM answers WHERE name = $1 AND status = 0";

// Locks of PostgreSQL. Two names that fall together make one wait for the other, and nothing worse. A wish names its
// effect, so it waits for whoever changes that effect and gets a true answer, where `SKIP LOCKED` would guess `Gone`.

pub(super) const LOCK_NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

pub(super) const LOCK_EFFECT: &str = "SELECT 1 FROM effects WHERE id = $1 FOR UPDATE";

/// The server's time in microseconds, as it is now and not when a transaction began.
pub(super) const SERVER_TIME: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";

/// Where commits are told.
pub(super) const CHANNEL: &str = "conductor";

pub(super) const TELL: &str = "SELECT pg_notify('conductor', $1)";

// Claims. Locks of a session and not of a transaction: they end with the process.

pub(super) const CLAIM: &str = "SELECT pg_advisory_lock_shared(hashtextextended('server', 0))";

pub(super) const CLAIM_ALONE: &str = "SELECT pg_advisory_lock(hashtextextended('server', 0))";

pub(super) const CLAIM_NAME: &str = "SELECT pg_advisory_lock(hashtextextended($1, 0))";

/// The first number is ours alone among the locks of a database: `Cond` as bytes.
pub(super) const LOCK_VERSION: &str = "SELECT pg_advisory_lock_shared(1131376228, $1)";

pub(super) const PASS_SCHEMA_LOCK: &str =
    "SELECT pg_advisory_xact_lock_shared(hashtextextended('schema', 0))";

pub(super) const OTHER_VERSIONS: &str = "SELECT CAST(CAST(objid AS BIGINT) AS INTEGER) FROM pg_locks \
    WHERE locktype = 'advisory' AND classid = 1131376228 AND objsubid = 2 \
    AND CAST(objid AS BIGINT) <> CAST($1 AS INTEGER) \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1";

pub(super) const NEWEST_MIGRATION: &str =
    "SELECT version, checksum FROM schema_migrations ORDER BY version DESC LIMIT 1";

/// Fails where one of the tables may not be written. Run within a transaction that is not kept.
pub(super) const TRY_RIGHTS: &str = "LOCK TABLE records, seen_inputs, effects, slots, runs, instance, forge_writes, \
    tool_calls, blobs, resource_leases, duties, marks, door_keys, passwords, record_places, answers \
    IN ROW EXCLUSIVE MODE";

/// The server's version as a number (15.3 is 150003), and the encoding of the database.
pub(super) const SERVER: &str =
    "SELECT CAST(current_setting('server_version_num') AS BIGINT), current_setting('server_encoding')";

/// The server's version in its own words.
pub(super) const SERVER_VERSION: &str = "SELECT current_setting('server_version')";

/// A row when this session is encrypted.
pub(super) const ENCRYPTED: &str =
    "SELECT CAST(version AS TEXT) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";

/// What this user may not do: make tables where there are none yet, or read and write those that are there.
pub(super) const MISSING_RIGHTS: &str = "SELECT 'make tables in schema ' || COALESCE(current_schema(), '?') \
    WHERE NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_migrations') \
    AND NOT COALESCE(has_schema_privilege(current_schema(), 'CREATE'), FALSE) \
    UNION ALL \
    SELECT lower(p.privilege) || ' ' || t.tablename FROM pg_tables t \
    CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p(privilege) \
    WHERE t.schemaname = current_schema() \
    AND NOT (has_schema_privilege(t.schemaname, 'USAGE') \
    AND has_table_privilege(quote_ident(t.schemaname) || '.' || quote_ident(t.tablename), p.privilege)) ORDER BY 1";

// Transactions. `begin` differs and stands in `conn.rs`.

pub(super) const COMMIT: &str = "COMMIT";

pub(super) const ROLLBACK: &str = "ROLLBACK";

pub(super) const SAVEPOINT: &str = "SAVEPOINT one_write";

pub(super) const RELEASE: &str = "RELEASE SAVEPOINT one_write";

pub(super) const ROLLBACK_TO: &str = "ROLLBACK TO SAVEPOINT one_write";

// Search. A batch's records come as one JSON array of stream, number, time and words.

/// Numbers of the file's own: the first is one more than the last there was.
pub(super) const PLACE_RECORDS: &str = "INSERT INTO record_places (stream, seq, at) \
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each($1) ORDER BY key";

pub(super) const INDEX_RECORDS: &str = "INSERT INTO record_words (rowid, words) \
    SELECT (SELECT MAX(place) FROM record_places) - json_array_length($1) + key + 1, value ->> 3 \
    FROM json_each($1) ORDER BY key";

/// The same for PostgreSQL, where a place has its words beside it.
pub(super) const PLACE_RECORDS_POSTGRES: &str = "INSERT INTO record_places (stream, seq, at, words) \
    SELECT one.value ->> 0, CAST(one.value ->> 1 AS BIGINT), CAST(one.value ->> 2 AS BIGINT), \
    array_to_tsvector(string_to_array(one.value ->> 3, ' ')) \
    FROM json_array_elements(CAST($1 AS JSON)) WITH ORDINALITY one(value, n) ORDER BY one.n";

/// Emptying is a wish that is written into a table of this kind.
pub(super) const FORGET_WORDS: &str = "INSERT INTO record_words (record_words) VALUES ('delete-all')";

pub(super) const FORGET_PLACES: &str = "DELETE FROM record_places";

pub(super) const PLACE_ALL_RECORDS: &str = "INSERT INTO record_places (stream, seq, at) \
    SELECT stream, seq, at FROM records ORDER BY at, stream, seq";

pub(super) const RECORDS_TO_INDEX: &str = "SELECT p.place, r.stream, r.class, r.kind, r.payload, r.actor_type, \
    r.actor, r.cause, r.at, runs.project, runs.repo \
    FROM record_places p JOIN records r ON r.stream = p.stream AND r.seq = p.seq \
    LEFT JOIN runs ON 'run/' || runs.run = r.stream WHERE p.place > $1 ORDER BY p.place LIMIT $2";

pub(super) const GIVE_WORDS: &str = "INSERT INTO record_words (rowid, words) \
    SELECT value ->> 0, value ->> 1 FROM json_each($1) ORDER BY key";

/// The same for PostgreSQL.
pub(super) const GIVE_WORDS_POSTGRES: &str = "UPDATE record_places SET \
    words = array_to_tsvector(string_to_array(one.value ->> 1, ' ')) \
    FROM json_array_elements(CAST($1 AS JSON)) one(value) WHERE place = CAST(one.value ->> 0 AS BIGINT)";

macro_rules! found_columns {
    () => {
        "SELECT p.place, r.stream, r.seq, r.event_id, r.schema_version, r.class, r.kind, r.payload, r.payload_hash, \
         r.actor_type, r.actor, r.cause, r.at, r.hash FROM "
    };
}

macro_rules! is_found {
    () => {
        " p.place < $2 AND p.at >= $3 AND p.at < $4 AND $5 NOT LIKE '% ' || r.kind || ' %' \
         ORDER BY p.place DESC LIMIT $6"
    };
}

/// The words lead, and bring their records in the order that is wanted; `CROSS` keeps it so.
pub(super) const FIND_RECORDS: &str = concat!(
    found_columns!(),
    "record_words w CROSS JOIN record_places p ON p.place = w.rowid \
     CROSS JOIN records r ON r.stream = p.stream AND r.seq = p.seq WHERE record_words MATCH $1 AND w.rowid < $2 \
     AND p.at >= $3 AND p.at < $4 AND $5 NOT LIKE '% ' || r.kind || ' %' ORDER BY w.rowid DESC LIMIT $6"
);

/// The same for PostgreSQL.
pub(super) const FIND_RECORDS_POSTGRES: &str = concat!(
    found_columns!(),
    "record_places p JOIN records r ON r.stream = p.stream AND r.seq = p.seq \
     WHERE p.words @@ CAST($1 AS TSQUERY) AND",
    is_found!()
);

/// Without any word.
pub(super) const LATEST_RECORDS: &str = concat!(
    found_columns!(),
    "record_places p JOIN records r ON r.stream = p.stream AND r.seq = p.seq WHERE CAST($1 AS TEXT) = '' AND",
    is_found!()
);

pub(super) const CREATE_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
    (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";

pub(super) const MIGRATIONS: &str = "SELECT version, name, checksum FROM schema_migrations ORDER BY version";

pub(super) const INSERT_MIGRATION: &str =
    "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";
