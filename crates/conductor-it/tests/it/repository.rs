//! The repository is not as a run needs it: each time the run says what is wrong, and nobody's branch is touched.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use conductor_forge::Edit;
use conductor_forge::state::Role;
use conductor_it::Stage;
use conductor_it::stage::{Play, REPO};

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    a_repository_that_cannot_be_worked_on_fails_the_run_by_name,
    a_branch_that_is_there_already_fails_the_run_and_stays,
    a_branch_that_somebody_else_pushed_is_never_overwritten,
    a_repository_is_given_nothing_and_none_of_it_is_kept,
);

/// RUN-1, RUN-12: empty, without its base branch, without its default branch: the run fails, says why at the issue and in
/// the terminal, and leaves nothing behind.
async fn a_repository_that_cannot_be_worked_on_fails_the_run_by_name(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let dir = tempfile::tempdir()?;
    let empty = dir.path().join("empty");
    git(dir.path(), &["init", "-q", "-b", "main", "empty"])?;
    let headless = dir.path().join("headless");
    git(dir.path(), &["init", "-q", "-b", "main", "headless"])?;
    commit(&headless)?;
    git(&headless, &["branch", "-m", "main", "work"])?;
    git(&headless, &["symbolic-ref", "HEAD", "refs/heads/main"])?;
    let whole = Play::shell(GREETING).repo;
    let cases = [
        ("empty", empty.as_path(), None, "is empty; push a first commit"),
        (
            "headless",
            &headless,
            None,
            "has no branch `main`; check its default branch",
        ),
        (
            "baseless",
            &whole,
            Some("nowhere"),
            "has no branch `nowhere`; check",
        ),
    ];
    for (name, from, base, words) in cases {
        let repo = format!("acme/{name}");
        stage.forge.import_repository("acme", name, from).await?;
        stage.forge.grant(&repo, "dana", Role::Write)?;
        let issue = stage.person.open_issue(&repo, "Greet people", "Please.")?;
        let mut add = vec!["repo", "add", &repo, "--project", "acme", "--test", "true"];
        add.extend(base.iter().flat_map(|base| ["--base", base]));
        stage.program.say(&add)?.done()?;
        let said = stage
            .program
            .say(&["run", "start", &repo, &issue.to_string()])?
            .done()?;
        let run = said.data["run"].as_str().context("a run")?.to_owned();
        let seen = stage.wait_for_clean_up(&run)?;
        ensure!(seen["run"]["phase"] == "failed", "{name}: {seen:#}");
        let shown = stage.program.say_plainly(&["run", "show", &run])?.done()?.stdout;
        ensure!(shown.contains(words), "{name}: {shown}");
        let comments = stage.forge.comments(&repo, issue)?;
        let told = comments
            .iter()
            .filter(|comment| comment.body.contains(words))
            .count();
        ensure!(told == 1, "{name}: told {told} times: {comments:#?}");
        stage.verify(&run)?;
    }
    Ok(())
}

/// OWN-3, OWN-4: what is merged is what was there and what the agent wrote, with no file of Conductor's; what the agent never
/// looked at is nowhere in the database.
async fn a_repository_is_given_nothing_and_none_of_it_is_kept(kept: Kept) -> Result<()> {
    const RECIPE: &str = "three parts patience, one part luck";
    let dir = tempfile::tempdir()?;
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo)?;
    for file in ["README.md", "test.sh"] {
        std::fs::copy(Play::shell(GREETING).repo.join(file), repo.join(file))?;
    }
    std::fs::write(repo.join("recipe.txt"), RECIPE)?;
    let play = Play {
        repo,
        ..kept.shell(GREETING)
    };
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Greet people")?;
    stage.carry_through(&run).await?;
    let merged = dir.path().join("merged");
    let url = stage.url_of_person(REPO)?;
    git(dir.path(), &["clone", "-q", &url, "merged"])?;
    let files = git(&merged, &["ls-tree", "-r", "--name-only", "HEAD"])?;
    ensure!(
        files
            .lines()
            .eq(["README.md", "greeting.txt", "recipe.txt", "test.sh"]),
        "{files}"
    );
    stage.program.stop()?;
    let everything = kept.everything(stage.program.data_dir()).await?;
    let has = |words: &str| {
        // A server shows bytes as hexadecimal numbers.
        let digits: Vec<String> = words.bytes().map(|byte| format!("{byte:02x}")).collect();
        [words, &digits.concat()].iter().any(|form| {
            let form = form.as_bytes();
            everything.windows(form.len()).any(|window| window == form)
        })
    };
    ensure!(has("hello, world"), "what the agent wrote is in its papers");
    ensure!(has("recipe.txt"), "the names of files are known");
    ensure!(!has(RECIPE), "the content of a file that nobody read is kept");
    Ok(())
}

/// S-12, RUN-1: the branch is there already when the run begins: the run fails, and the branch stays what it was.
async fn a_branch_that_is_there_already_fails_the_run_and_stays(kept: Kept) -> Result<()> {
    let play = Play {
        slots: 1,
        ..kept.shell(GREETING)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let first = stage.start_run("first")?;
    stage.wait_for_phase(&first, "awaiting_plan_approval")?;
    let second = stage.start_run("second")?;
    let branch = format!("conductor/run-{second}");
    let theirs = push_as_person(&stage, &branch).await?;
    stage.program.say(&["run", "cancel", &first])?.done()?;
    let seen = stage.wait_for_clean_up(&second)?;
    ensure!(seen["run"]["phase"] == "failed", "{seen:#}");
    let why = seen["run"]["ended_because"].as_str().unwrap_or_default();
    ensure!(
        why.contains("exists already") && why.contains("remove it there or start another run"),
        "{why}"
    );
    ensure!(
        stage.forge.branch(REPO, &branch)? == Some(theirs),
        "{branch} was touched"
    );
    stage.verify(&second)
}

/// S-12, RUN-12: somebody else pushes to the run's branch; it is never overwritten and never deleted, the run stands still
/// and says what to do, and with the branch out of the way it goes on.
async fn a_branch_that_somebody_else_pushed_is_never_overwritten(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let (given_up, retried) = (stage.start_run("Give me up")?, stage.start_run("Try me again")?);
    let mut theirs = vec![];
    for run in [&given_up, &retried] {
        stage.wait_for_phase(run, "awaiting_plan_approval")?;
        theirs.push(push_as_person(&stage, &format!("conductor/run-{run}")).await?);
        stage.approve(run)?;
    }
    for (run, theirs) in [&given_up, &retried].into_iter().zip(&theirs) {
        let seen = stage.wait(run, "a hold", |run| run["run"]["held"] == true)?;
        ensure!(seen["run"]["phase"] == "proposing", "{seen:#}");
        let shown = stage.program.say_plainly(&["run", "show", run])?.done()?.stdout;
        for words in [
            "was not overwritten",
            "move that branch away",
            &format!("conductor run retry {run}"),
            theirs,
        ] {
            ensure!(shown.contains(words), "no `{words}` in {shown}");
        }
    }
    ensure!(stage.forge.pulls(REPO)?.is_empty(), "nothing was proposed");
    stage
        .program
        .say(&["run", "fail", &given_up, "--comment", "not ours"])?
        .done()?;
    stage.wait_for_clean_up(&given_up)?;
    for (run, theirs) in [&given_up, &retried].into_iter().zip(theirs) {
        let branch = format!("conductor/run-{run}");
        ensure!(
            stage.forge.branch(REPO, &branch)? == Some(theirs),
            "{branch} was touched"
        );
    }

    let scratch = tempfile::tempdir()?;
    git(scratch.path(), &["init", "-q"])?;
    let url = stage.url_of_person(REPO)?;
    git(
        scratch.path(),
        &[
            "push",
            "-q",
            &url,
            &format!(":refs/heads/conductor/run-{retried}"),
        ],
    )?;
    stage.program.say(&["run", "retry", &retried])?.done()?;
    stage.merge(&retried).await?;
    stage.wait_for_clean_up(&retried)?;
    stage.verify(&given_up)?;
    stage.verify(&retried)
}

/// Commits something of their own to a branch; returns the commit.
async fn push_as_person(stage: &Stage, branch: &str) -> Result<String> {
    let mine = Edit {
        path: "mine.txt",
        content: Some(b"mine\n"),
    };
    Ok(stage.person.commit(REPO, branch, &[mine], "Mine").await?)
}

fn commit(repo: &Path) -> Result<()> {
    std::fs::write(repo.join("README.md"), "hello\n")?;
    git(repo, &["add", "."])?;
    git(
        repo,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "first",
        ],
    )?;
    Ok(())
}

fn git(dir: &Path, arguments: &[&str]) -> Result<String> {
    let ran = Command::new("git").arg("-C").arg(dir).args(arguments).output()?;
    ensure!(
        ran.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(String::from_utf8(ran.stdout)?)
}
