-- Where the instance's stream ended when its state was told, so that what is cut off its end is missed; which runs
-- still hold something; which run works on which issue.

ALTER TABLE instance ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN head TEXT NOT NULL DEFAULT '';
UPDATE instance SET
    seq = COALESCE((SELECT MAX(r.seq) FROM records r WHERE r.stream = 'instance'), 0),
    head = COALESCE((SELECT r.hash FROM records r WHERE r.stream = 'instance' ORDER BY r.seq DESC LIMIT 1), '');

ALTER TABLE runs ADD COLUMN cleaned_up SMALLINT NOT NULL DEFAULT 0;
-- Within a text, JSON writes quotes behind a backslash, so nothing but the field reads like this.
UPDATE runs SET cleaned_up = 1 WHERE state LIKE '%"cleaned_up":true%';
CREATE INDEX runs_unfinished ON runs (created_at, run) WHERE cleaned_up = 0;

CREATE TABLE open_issues (
    repo BIGINT NOT NULL,
    issue BIGINT NOT NULL,
    run TEXT NOT NULL UNIQUE,
    UNIQUE (repo, issue)
);

-- An earlier version could let two runs begin on one issue; the first of them keeps it.
INSERT INTO open_issues (repo, issue, run)
SELECT repo, issue, MIN(run) FROM runs WHERE terminal = 0 GROUP BY repo, issue;
