//! Puts together the statement that finds runs, of what a filter asks for and nothing else.
//!
//! A condition that stands there though nobody asked (`$1 IS NULL OR project = $1`) keeps both databases from every index,
//! and then each page costs as much as there are runs. Which question each index answers is said in
//! `migrations/0008_questions.sql` and `0009_since.sql`; the tests below ask them. It does not know who asks.

use conductor_domain::id::RunId;
use conductor_port::views::RunFilter;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use super::conn::Arg::{Int, Text};
use super::conn::{Arg, Db};
use super::rows::number;
use super::{Paged, Statement, sql};

/// The runs that somebody asks for.
#[derive(Debug)]
pub(super) struct Wanted<'f> {
    filter: &'f RunFilter,
    repo: Option<i64>,
    pull_request: Option<i64>,
    issue: Option<i64>,
    /// The pattern of whatever holds the text.
    text: Option<String>,
    /// What makes `lower` change ASCII letters and leave the others.
    fold: &'static str,
}

/// Conditions that must all hold, and what goes into them. Their words are of this file; whatever was asked goes into them as
/// a value.
#[derive(Debug, Default)]
struct Conditions<'a> {
    all: Vec<String>,
    args: Vec<Arg<'a>>,
}

impl<'a> Conditions<'a> {
    fn hold(&mut self, condition: &str) {
        self.all.push(condition.to_owned());
    }

    /// Adds a condition in which `$?` stands for a value.
    fn hold_with(&mut self, condition: &str, arg: Arg<'a>) {
        let place = self.take(arg);
        self.all.push(condition.replace("$?", &place));
    }

    fn take(&mut self, arg: Arg<'a>) -> String {
        self.args.push(arg);
        format!("${}", self.args.len())
    }

    fn words(&self) -> String {
        if self.all.is_empty() {
            return String::new();
        }
        format!(" WHERE {}", self.all.join(" AND "))
    }
}

impl<'f> Wanted<'f> {
    /// Takes a filter for a database; a number that no row can have is an error.
    pub(super) fn of(filter: &'f RunFilter, db: &Db) -> Result<Self, sqlx::Error> {
        let kept = |given: Option<u64>| given.map(number).transpose();
        Ok(Self {
            filter,
            repo: kept(filter.repo.map(|repo| repo.0))?,
            pull_request: kept(filter.pull_request)?,
            issue: kept(filter.issue)?,
            text: filter.text.as_deref().map(containing),
            fold: db.fold(),
        })
    }

    /// The statement that counts them, up to the filter's limit.
    pub(super) fn count(&self) -> Statement<'_> {
        let after = self.filter.after.as_ref().map(RunId::as_str);
        let mut conditions = self.conditions(after);
        let limit = conditions.take(Int(i64::from(self.filter.limit)));
        let words = conditions.words();
        let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM runs{words} LIMIT {limit}) counted");
        Statement {
            sql: AssertSqlSafe(sql).into_sql_str(),
            args: conditions.args,
        }
    }

    /// Flags are written out, because an index of some rows serves only who is known to want no others.
    fn conditions<'a>(&'a self, after: Option<&'a str>) -> Conditions<'a> {
        let mut conditions = Conditions::default();
        if let Some(project) = &self.filter.project {
            conditions.hold_with("project = $?", Text(project));
        }
        if let Some(repo) = self.repo {
            conditions.hold_with("repo = $?", Int(repo));
        }
        if let Some(phase) = &self.filter.phase {
            conditions.hold_with("phase = $?", Text(phase));
        }
        if self.filter.needs_human {
            conditions.hold("needs_human = 1");
        }
        if self.filter.needs_nobody {
            conditions.hold("needs_human = 0");
        }
        if self.filter.open {
            conditions.hold("terminal = 0");
        }
        if self.filter.unfinished {
            conditions.hold("cleaned_up = 0");
        }
        if let Some(pull_request) = self.pull_request {
            conditions.hold_with("pull_request = $?", Int(pull_request));
        }
        if let Some(issue) = self.issue {
            conditions.hold_with("issue = $?", Int(issue));
        }
        if let Some(after) = after {
            conditions.hold_with(
                "(created_at, run) < (SELECT b.created_at, b.run FROM runs b WHERE b.run = $?)",
                Text(after),
            );
        }
        if let Some(text) = &self.text {
            let named = "lower((title || ' ' || repo_name || ' ' || run || ' #' || CAST(issue AS TEXT))";
            conditions.hold_with(&format!("{named}{}) LIKE $? ESCAPE '!'", self.fold), Text(text));
        }
        conditions
    }
}

impl Paged for Wanted<'_> {
    fn page<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Statement<'a> {
        let mut conditions = self.conditions(after);
        let limit = conditions.take(Int(i64::from(limit)));
        let (runs, words) = (sql::ALL_RUNS, conditions.words());
        let sql = format!("{runs}{words} ORDER BY created_at DESC, run DESC LIMIT {limit}");
        Statement {
            sql: AssertSqlSafe(sql).into_sql_str(),
            args: conditions.args,
        }
    }
}

/// The pattern of whatever holds a text, without regard to the case of ASCII letters.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_ascii_lowercase().chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::RepoId;
    use sqlx::SqlStr;

    use super::*;
    use crate::database::error::Place;
    use crate::database::migrate::{self, MIGRATIONS};
    use crate::database::open::{Settings, readers, writer};

    async fn plan(db: &Db, statement: Statement<'_>) -> Vec<String> {
        let sql = format!("EXPLAIN QUERY PLAN {}", SqlStr::as_str(&statement.sql));
        let mut conn = db.reader().await.unwrap();
        let steps = conn.fetch(AssertSqlSafe(sql), &statement.args).await.unwrap();
        let steps = steps.iter().map(|step| step.text(3).unwrap());
        // What a count is made of, and the run that a page comes after, are steps of their own.
        let of_runs = steps.filter(|step| step.contains(" runs") || step.contains("ORDER BY"));
        let briefly = of_runs.map(|step| {
            let step = step.replace("runs USING INDEX ", "");
            step.replace("runs USING COVERING INDEX ", "covering ")
        });
        briefly.collect()
    }

    /// UI-1: a page costs what it shows, however many runs there are. Each question that pages ask is answered from an index
    /// that has nothing else, in the order of the answer; a step that says SCAN would look at every run.
    #[tokio::test]
    async fn no_question_of_a_page_looks_at_every_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.sqlite");
        let settings = Settings::default();
        let db = Db::Sqlite {
            writer: Some(writer(&path, &settings)),
            readers: readers(&path, &settings),
        };
        migrate::run(&db, &Place::File(path), MIGRATIONS, 1)
            .await
            .unwrap();

        let all = RunFilter {
            limit: 50,
            ..RunFilter::default()
        };
        let open = RunFilter {
            open: true,
            ..all.clone()
        };
        let waiting = RunFilter {
            needs_human: true,
            ..all.clone()
        };
        let going = RunFilter {
            needs_nobody: true,
            ..open.clone()
        };
        let column = RunFilter {
            phase: Some("executing".to_owned()),
            ..open.clone()
        };
        let failed = RunFilter {
            phase: Some("failed".to_owned()),
            ..all.clone()
        };
        let in_project = |filter: &RunFilter| RunFilter {
            project: Some("demo".to_owned()),
            ..filter.clone()
        };
        let in_repo = |filter: &RunFilter| RunFilter {
            repo: Some(RepoId(7)),
            ..filter.clone()
        };
        let older = |filter: &RunFilter| RunFilter {
            after: Some(RunId::parse("r-1").unwrap()),
            ..filter.clone()
        };
        let of_issue = RunFilter {
            issue: Some(3),
            ..in_repo(&open)
        };
        let unfinished = RunFilter {
            unfinished: true,
            ..in_repo(&all)
        };
        for (filter, expected) in [
            // Home, and the inbox of a project.
            (in_project(&waiting), "SEARCH runs_by_project (project=?)"),
            (going.clone(), "SEARCH runs_going (needs_human=? AND terminal=?)"),
            (open.clone(), "SEARCH runs_open (terminal=?)"),
            (failed.clone(), "SEARCH runs_by_phase (phase=?)"),
            // The board.
            (column.clone(), "SEARCH runs_on_board (terminal=? AND phase=?)"),
            (
                in_project(&column),
                "SEARCH runs_on_board (terminal=? AND phase=?)",
            ),
            (in_repo(&column), "SEARCH runs_on_board (terminal=? AND phase=?)"),
            // The list. Its first page reads the newest rows, and no others, because nothing is left out of it.
            (all.clone(), "SCAN runs_by_age"),
            (older(&all), "SEARCH runs_by_age (created_at<?)"),
            (older(&failed), "SEARCH runs_by_phase (phase=? AND created_at<?)"),
            (in_project(&all), "SEARCH runs_by_project (project=?)"),
            (
                older(&in_project(&all)),
                "SEARCH runs_by_project (project=? AND created_at<?)",
            ),
            (in_repo(&all), "SEARCH runs_by_repo (repo=?)"),
            // Several at once, a new run and a webhook about an issue, who waits for a slot.
            (in_project(&open), "SEARCH runs_open (terminal=?)"),
            (
                older(&in_project(&open)),
                "SEARCH runs_open (terminal=? AND created_at<?)",
            ),
            (of_issue, "SEARCH runs_open (terminal=?)"),
            (unfinished, "SEARCH runs_unfinished (cleaned_up=?)"),
        ] {
            let wanted = Wanted::of(&filter, &db).unwrap();
            let asked = filter.after.as_ref().map(RunId::as_str);
            assert_eq!(plan(&db, wanted.page(asked, 50)).await, [expected], "{filter:?}");
        }
        // Home and the inbox: who waits, of those that are over, too, is put in order, because there are not many of them.
        for filter in [waiting.clone(), older(&waiting)] {
            let wanted = Wanted::of(&filter, &db).unwrap();
            let asked = filter.after.as_ref().map(RunId::as_str);
            let expected = [
                "SEARCH runs_waiting (needs_human=?)",
                "USE TEMP B-TREE FOR ORDER BY",
            ];
            assert_eq!(plan(&db, wanted.page(asked, 50)).await, expected, "{filter:?}");
        }
        // How many wait, and how many more there are than Home shows.
        for (filter, counted) in [
            (waiting.clone(), "SEARCH covering runs_waiting (needs_human=?)"),
            (older(&waiting), "SEARCH covering runs_waiting (needs_human=?)"),
            (
                older(&going),
                "SEARCH covering runs_going (needs_human=? AND terminal=? AND created_at<?)",
            ),
            (
                older(&failed),
                "SEARCH covering runs_by_phase (phase=? AND created_at<?)",
            ),
        ] {
            let wanted = Wanted::of(&filter, &db).unwrap();
            assert_eq!(plan(&db, wanted.count()).await, [counted], "{filter:?}");
        }
    }
}
