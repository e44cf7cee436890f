//! Runs git on the forge's bare repositories: import, read, merge and commit, without a work tree.
//!
//! Every call has an empty environment and no configuration but the repository's own, which only the
//! forge writes. It knows nothing of issues, pull requests or people's rights.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::refusal::Refusal;
use crate::state::Size;

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

/// A file of a commit that a person makes in the browser; no content deletes it.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    pub path: &'a str,
    pub content: Option<&'a [u8]>,
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

    /// Makes a bare repository from a git repository (its branches and tags) or from a plain directory.
    pub(crate) async fn import(&self, from: &Path, to: &Path, by: &Identity) -> Result<(), Refusal> {
        let is_repository = from.join(".git").exists() || from.join("HEAD").is_file();
        let mut init = self.command();
        init.args([
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--initial-branch=main",
        ])
        .arg(to);
        self.expect(init, "create the repository", None).await?;
        self.text(to, &["config", "receive.hideRefs", "refs/pull"])
            .await?;
        self.text(to, &["config", "receive.autogc", "false"]).await?;
        if is_repository {
            let mut fetch = self.command();
            fetch.arg("--git-dir").arg(to).args([
                "-c",
                "safe.directory=*",
                "fetch",
                "--quiet",
                "--no-auto-gc",
            ]);
            fetch
                .arg(from)
                .args(["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]);
            self.expect(fetch, "import the repository", None).await?;
            let mut head = self.command();
            head.arg("-C")
                .arg(from)
                .args(["-c", "safe.directory=*", "symbolic-ref", "HEAD"]);
            if let Ok(branch) = self.expect(head, "read the default branch", None).await {
                self.text(to, &["symbolic-ref", "HEAD", branch.trim()]).await?;
            }
            return Ok(());
        }
        let index = to.join("import-index");
        let mut add = self.command();
        add.env("GIT_INDEX_FILE", &index)
            .arg("--git-dir")
            .arg(to)
            .arg("--work-tree")
            .arg(from)
            .args(["add", "-A"]);
        self.expect(add, "read the directory", None).await?;
        let tree = self.with_index(to, &index, &["write-tree"], None).await?;
        let commit = self
            .commit_tree(to, tree.trim(), &[], "Initial commit", by)
            .await?;
        self.text(to, &["update-ref", "refs/heads/main", &commit]).await?;
        let _ = tokio::fs::remove_file(&index).await;
        Ok(())
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

    pub(crate) async fn commit_tree(
        &self,
        dir: &Path,
        tree: &str,
        parents: &[&str],
        message: &str,
        by: &Identity,
    ) -> Result<String, Refusal> {
        let mut command = self.on(dir);
        command
            .env("GIT_AUTHOR_NAME", &by.name)
            .env("GIT_AUTHOR_EMAIL", &by.email)
            .env("GIT_COMMITTER_NAME", &by.name)
            .env("GIT_COMMITTER_EMAIL", &by.email)
            .args(["commit-tree", tree]);
        for parent in parents {
            command.args(["-p", parent]);
        }
        command.args(["-F", "-"]);
        let commit = self
            .expect(command, "make a commit", Some(message.as_bytes()))
            .await?;
        Ok(commit.trim().to_owned())
    }

    /// Commits edits on top of a branch (or starts it) and moves the branch there.
    pub(crate) async fn commit_edits(
        &self,
        dir: &Path,
        branch: &str,
        edits: &[Edit<'_>],
        message: &str,
        by: &Identity,
    ) -> Result<String, Refusal> {
        let name = format!("refs/heads/{branch}");
        let parent = self.resolve(dir, &name).await?;
        let index = dir.join("edit-index");
        let _ = tokio::fs::remove_file(&index).await;
        if let Some(parent) = &parent {
            self.with_index(dir, &index, &["read-tree", parent], None).await?;
        }
        for edit in edits {
            let Some(content) = edit.content else {
                self.with_index(
                    dir,
                    &index,
                    &["update-index", "--force-remove", "--", edit.path],
                    None,
                )
                .await?;
                continue;
            };
            let blob = self
                .with_index(dir, &index, &["hash-object", "-w", "--stdin"], Some(content))
                .await?;
            let entry = format!("100644,{},{}", blob.trim(), edit.path);
            self.with_index(
                dir,
                &index,
                &["update-index", "--add", "--cacheinfo", &entry],
                None,
            )
            .await?;
        }
        let tree = self.with_index(dir, &index, &["write-tree"], None).await?;
        let parents: Vec<&str> = parent.as_deref().into_iter().collect();
        let commit = self.commit_tree(dir, tree.trim(), &parents, message, by).await?;
        self.move_ref(dir, &name, &commit, parent.as_deref()).await?;
        Ok(commit)
    }

    /// Moves a ref only if it still is where the caller saw it.
    pub(crate) async fn move_ref(
        &self,
        dir: &Path,
        name: &str,
        to: &str,
        from: Option<&str>,
    ) -> Result<(), Refusal> {
        let absent = "0".repeat(to.len());
        self.text(dir, &["update-ref", name, to, from.unwrap_or(&absent)])
            .await
            .map(drop)
    }

    pub(crate) async fn set_ref(&self, dir: &Path, name: &str, to: &str) -> Result<(), Refusal> {
        self.text(dir, &["update-ref", name, to]).await.map(drop)
    }

    pub(crate) async fn delete_ref(&self, dir: &Path, name: &str) -> Result<(), Refusal> {
        self.text(dir, &["update-ref", "-d", name]).await.map(drop)
    }

    async fn with_index(
        &self,
        dir: &Path,
        index: &Path,
        args: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<String, Refusal> {
        let mut command = self.on(dir);
        command.env("GIT_INDEX_FILE", index).args(args);
        self.expect(command, args[0], stdin).await
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
