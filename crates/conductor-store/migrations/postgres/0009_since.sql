-- Since when a session is open, so that it ends however much it is used. Those that are open now were opened at no time that
-- is known: they are not made longer, and end by themselves.

ALTER TABLE door_keys ADD COLUMN since BIGINT NOT NULL DEFAULT 0;

-- What goes on without a person: read by Home, which shows it beside what waits for one.
CREATE INDEX runs_going ON runs (needs_human, terminal, created_at, run) WHERE needs_human = 0 AND terminal = 0;
