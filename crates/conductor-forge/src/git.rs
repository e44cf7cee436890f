//! Runs git on the forge's bare repositories and reads them; `write` changes them.
//!
//! Every call has an empty environment and no configuration but the repository's own, which only the
//! forge writes. It knows nothing of issues, pull requests or people's rights.

mod write;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::state::Size;

pub use write::Edit;

#[derive(Debug)]
pub(crate) struct Git {
    path: OsString,
}

/// What `merge-tree` made of two commits.
pub(crate) enum Merged {
    Tree(String),
    Conflict,
}

/// Who stands in a commit that the site makes for a person.
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// What a commit says about itself.
pub(crate) struct CommitFacts {
    pub(crate) sha: String,
    pub(crate) tree: String,
    pub(crate) parents: Vec<String>,
    pub(crate) author: Identity,
    pub(crate) authored_at: Moment,
    pub(crate) committer: Identity,
    pub(crate) committed_at: Moment,
    pub(crate) message: String,
}

struct Output {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Git {
    #[expect(
        clippy::disallowed_methods,
        reason = "git is found by the search path, and by nothing else"
    )]
    pub(crate) fn new() -> Self {
        Self {
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
        }
    }

    /// A git command with nothing inherited but the search path.
    #[allow(clippy::disallowed_methods, reason = "the one home of git in this crate")]
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn default_branch(&self, dir: &Path) -> Result<String, Refusal> {
        let head = self.text(dir, &["symbolic-ref", "HEAD"]).await?;
        Ok(head.trim().trim_start_matches("refs/heads/").to_owned())
    }

    pub(crate) async fn heads(&self, dir: &Path) -> Result<BTreeMap<String, String>, Refusal> {
        let listing = self
            .text(
                dir,
                &[
                    "for-each-ref",
                    "--format=%(objectname) %(refname:lstrip=2)",
                    "refs/heads",
                ],
            )
            .await?;
        Ok(listing
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(sha, branch)| (branch.to_owned(), sha.to_owned()))
            .collect())
    }

    /// Resolves a branch, tag, full ref name or commit id to a commit id.
    pub(crate) async fn resolve(&self, dir: &Path, name: &str) -> Result<Option<String>, Refusal> {
        if name.starts_with('-') || name.contains([':', '^', '~', '@', '\0', '\n']) {
            return Ok(None);
        }
        let commit = format!("{name}^{{commit}}");
        let output = self
            .run(
                dir,
                &["rev-parse", "--quiet", "--verify", "--end-of-options", &commit],
            )
            .await?;
        Ok((output.code == Some(0)).then(|| output.stdout.trim().to_owned()))
    }

    pub(crate) async fn commit_facts(&self, dir: &Path, sha: &str) -> Result<CommitFacts, Refusal> {
        const FORMAT: &str = "--format=%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";
        let text = self.text(dir, &["show", "--no-patch", FORMAT, sha]).await?;
        let mut fields = text.splitn(9, '\0').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let moment = |text: String| Moment::from_second(text.parse().unwrap_or(0));
        Ok(CommitFacts {
            sha: sha.to_owned(),
            tree: next(),
            parents: next().split_whitespace().map(str::to_owned).collect(),
            author: Identity {
                name: next(),
                email: next(),
            },
            authored_at: moment(next()),
            committer: Identity {
                name: next(),
                email: next(),
            },
            committed_at: moment(next()),
            message: next().trim_end().to_owned(),
        })
    }

    pub(crate) async fn is_ancestor(&self, dir: &Path, old: &str, new: &str) -> Result<bool, Refusal> {
        Ok(self
            .run(dir, &["merge-base", "--is-ancestor", old, new])
            .await?
            .code
            == Some(0))
    }

    pub(crate) async fn size(&self, dir: &Path, base: &str, head: &str) -> Result<Size, Refusal> {
        let commits = self
            .text(dir, &["rev-list", "--count", &format!("{base}..{head}")])
            .await?;
        let listing = self
            .run(dir, &["diff", "--numstat", &format!("{base}...{head}")])
            .await?
            .stdout;
        let mut size = Size {
            commits: commits.trim().parse().unwrap_or(0),
            ..Size::default()
        };
        for line in listing.lines() {
            let mut columns = line.split('\t').map(|column| column.parse::<u64>().unwrap_or(0));
            size.additions += columns.next().unwrap_or(0);
            size.deletions += columns.next().unwrap_or(0);
            size.changed_files += 1;
        }
        Ok(size)
    }

    pub(crate) async fn merge_tree(&self, dir: &Path, base: &str, head: &str) -> Result<Merged, Refusal> {
        let output = self
            .run(dir, &["merge-tree", "--write-tree", "--no-messages", base, head])
            .await?;
        match output.code {
            Some(0) => Ok(Merged::Tree(output.stdout.trim().to_owned())),
            Some(1) => Ok(Merged::Conflict),
            _ => Err(Refusal::Broken(format!(
                "cannot merge {head} into {base}: {}",
                output.stderr.trim()
            ))),
        }
    }

    fn on(&self, dir: &Path) -> Command {
        let mut command = self.command();
        command
            .arg("--git-dir")
            .arg(dir)
            .args(["-c", "core.hooksPath=/dev/null"]);
        command
    }

    async fn text(&self, dir: &Path, args: &[&str]) -> Result<String, Refusal> {
        let mut command = self.on(dir);
        command.args(args);
        self.expect(command, args[0], None).await
    }

    async fn run(&self, dir: &Path, args: &[&str]) -> Result<Output, Refusal> {
        let mut command = self.on(dir);
        command.args(args);
        execute(command, args[0], None).await
    }

    async fn expect(&self, command: Command, what: &str, stdin: Option<&[u8]>) -> Result<String, Refusal> {
        let output = execute(command, what, stdin).await?;
        if output.code == Some(0) {
            Ok(output.stdout)
        } else {
            Err(Refusal::Broken(format!(
                "git could not {what}: {}",
                output.stderr.trim()
            )))
        }
    }
}

async fn execute(mut command: Command, what: &str, stdin: Option<&[u8]>) -> Result<Output, Refusal> {
    let failed = |error: std::io::Error| Refusal::Broken(format!("cannot run git to {what}: {error}"));
    command.stdin(if stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(bytes), Some(mut pipe)) = (stdin, child.stdin.take()) {
        pipe.write_all(bytes).await.map_err(failed)?;
    }
    let output = child.wait_with_output().await.map_err(failed)?;
    Ok(Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
