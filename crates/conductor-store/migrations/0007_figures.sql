-- What each run took, counted as it happened, and when it ended. Runs that began earlier have no figures until the
-- projections are made anew.

ALTER TABLE runs ADD COLUMN figures TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN ended_at BIGINT;
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;
