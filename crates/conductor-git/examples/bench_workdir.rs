//! Measures how long a run's working directory takes, against raw `git worktree add` of the same commit.
//!
//! `cargo run --release -p conductor-git --example bench_workdir [files]` prints the medians of interleaved
//! rounds and their ratio; the bar is 1.2.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures with the clock, plays people with git, and prints"
)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use conductor_domain::id::{RepoId, RunId};
use conductor_domain::spec::RepoRef;
use conductor_git::{Git, GitWorkspace, Identity, Protocol};
use conductor_port::workspace::{Prepared, Workspace as _};

/// What a working directory may take, as a multiple of raw git.
const BAR: f64 = 1.2;
const ROUNDS: usize = 5;

/// As people start it: the baseline is not ours to harden.
const PLAIN_GIT: &str = "git";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let files: usize = std::env::args()
        .nth(1)
        .map_or(Ok(50_000), |count| count.parse())?;
    let place = tempfile::tempdir()?;
    let upstream = place.path().join("o/n.git");
    make_upstream(place.path(), files)?;
    let repo = RepoRef {
        id: RepoId(1),
        host: "localhost".to_owned(),
        owner: "o".to_owned(),
        name: "n".to_owned(),
        clone_url: format!("file://{}", upstream.display()),
        base_branch: "main".to_owned(),
    };
    let git = Git::find(&[Protocol::File]).await?;
    let identity = Identity {
        name: "Bench".to_owned(),
        email: "bench@localhost".to_owned(),
    };
    let workspace = GitWorkspace::open(&place.path().join("data"), git, identity)?;
    let first = RunId::parse("warm-up")?;
    workspace
        .prepare(&first, &repo, "conductor/run-warm-up", None)
        .await?;
    let base = place.path().join("data/repos/localhost/o/n");

    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let target = place.path().join(format!("raw-{round}"));
        let start = Instant::now();
        run(
            &base,
            &[
                "worktree",
                "add",
                "--quiet",
                "--detach",
                &target.to_string_lossy(),
                "main",
            ],
        )?;
        raw.push(start.elapsed());

        let run = RunId::parse(format!("round-{round}"))?;
        let start = Instant::now();
        let prepared = workspace
            .prepare(&run, &repo, &format!("conductor/run-{run}"), None)
            .await?;
        ours.push(start.elapsed());
        assert!(matches!(prepared, Prepared::Ready { .. }));
    }
    let (raw, ours) = (median(raw), median(ours));
    println!("files {files}, rounds {ROUNDS}");
    println!("git worktree add          {:>8.3} s", raw.as_secs_f64());
    println!("prepare (fetch included)  {:>8.3} s", ours.as_secs_f64());
    let ratio = ours.as_secs_f64() / raw.as_secs_f64();
    println!("ratio                     {ratio:>8.3}, at most {BAR}");
    if ratio > BAR {
        return Err(format!(
            "a working directory takes {ratio:.3} times `git worktree add`, the bar is {BAR}"
        )
        .into());
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn make_upstream(place: &Path, files: usize) -> Result<(), Box<dyn Error>> {
    run(place, &["init", "--quiet", "--bare", "-b", "main", "o/n.git"])?;
    run(place, &["init", "--quiet", "-b", "main", "people"])?;
    let people = place.join("people");
    for number in 0..files {
        let directory = people.join(format!("directory-{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir(&directory)?;
        }
        let content = format!("file {number}\n").repeat(number % 200 + 1);
        fs::write(directory.join(format!("file-{number}.txt")), content)?;
    }
    run(&people, &["add", "-A"])?;
    run(
        &people,
        &[
            "-c",
            "user.name=P",
            "-c",
            "user.email=p@localhost",
            "commit",
            "--quiet",
            "-m",
            "first",
        ],
    )?;
    run(&people, &["push", "--quiet", "../o/n.git", "main"])?;
    Ok(())
}

fn run(directory: &Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(PLAIN_GIT)
        .args(args)
        .current_dir(directory)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("git {args:?} failed").into())
    }
}
