//! Writes into bare repositories: imports, commits, moved refs.
//!
//! Nothing is ever checked out. Who may write what was decided before.

use std::path::Path;

use super::{Git, Identity};
use crate::refusal::Refusal;

/// A file of a commit that a person makes in the browser; no content deletes it.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    pub path: &'a str,
    pub content: Option<&'a [u8]>,
}

impl Git {
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
}
