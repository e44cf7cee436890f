-- The questions that pages ask about runs, each answered by an index in the order of the answer, so that none costs more
-- because there are many runs. Rows are wide; what stands at the end of an index keeps a filter from reading those that it
-- leaves out. A flag stands in its own index, though it is the same in all of it, because SQLite prefers an index by
-- how many columns the question names.

-- What waits for a person: read, and counted on every page.
CREATE INDEX runs_waiting ON runs (needs_human, terminal, created_at, run) WHERE needs_human = 1;
-- What is going on, and a column of the board.
CREATE INDEX runs_open ON runs (terminal, created_at, run) WHERE terminal = 0;
CREATE INDEX runs_on_board ON runs (terminal, phase, created_at, run, needs_human, project, repo) WHERE terminal = 0;
-- What still holds something. The earlier index lost against the last one below, which has all runs of a repository.
DROP INDEX runs_unfinished;
CREATE INDEX runs_unfinished ON runs (cleaned_up, created_at, run) WHERE cleaned_up = 0;
-- How runs ended; the list of a project, and of a repository. Each has all that the others are asked for: two questions at
-- once may be answered from either, and read no row in vain.
CREATE INDEX runs_by_phase ON runs (phase, created_at, run, needs_human, project, repo);
CREATE INDEX runs_by_project ON runs (project, created_at, run, needs_human, phase, repo);
CREATE INDEX runs_by_repo ON runs (repo, created_at, run, needs_human, phase, project);
