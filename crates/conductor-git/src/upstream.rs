//! Repositories that are only read: resolves names and writes out the files of a commit, by the same cached clones.
//!
//! This module does not know what the files are for.

use std::path::Path;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_port::upstream::Upstream;

use crate::address::Address;
use crate::base::Base;
use crate::call::{Git, Place};
use crate::error::Error;
use crate::fill::fill;
use crate::layout::{Layout, make_temporary};
use crate::object::commit_id;
use crate::remote::Remote;

/// Reads repositories of others, without credentials.
#[derive(Debug)]
pub struct GitUpstream {
    git: Git,
    layout: Layout,
}

impl GitUpstream {
    /// Keeps its clones in `layout`.
    pub fn new(git: Git, layout: Layout) -> Self {
        Self { git, layout }
    }

    async fn has(&self, repository: &Path, commit: &CommitId) -> Result<bool, Error> {
        let found = self
            .git
            .call(Place::Repository(repository), "cat-file")
            .args(["-e", &format!("{}^{{commit}}", commit.as_str())])
            .finish()
            .await?;
        Ok(found.status.success())
    }

    /// Asks the server where refs stand; a pattern of its own that matches more is no harm.
    async fn ask(&self, address: &Address, refs: &[&str]) -> Result<Option<CommitId>, Error> {
        let remote = Remote::open(&self.git, &self.layout, address, None)?;
        let call = self
            .git
            .call(Place::Directory(self.layout.staging()), "ls-remote")
            .args(["--quiet", "--", address.url()])
            .args(refs);
        let finished = remote.reach(call).finish().await?;
        if !finished.status.success() {
            return Err(remote.name(finished, "ls-remote"));
        }
        let answer = String::from_utf8_lossy(&finished.stdout).into_owned();
        let found = refs.iter().find_map(|wanted| {
            let mut lines = answer.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, name)| name == wanted)
        });
        found.map(|(id, _)| commit_id(id)).transpose()
    }
}

#[async_trait]
impl Upstream for GitUpstream {
    async fn resolve(&self, url: &str, reference: Option<&str>) -> Result<CommitId, Fault> {
        let address = Address::parse(url)?;
        let Some(name) = reference else {
            let found = self.ask(&address, &["HEAD"]).await?;
            return Ok(found.ok_or_else(|| Error::EmptyRepository { url: url.to_owned() })?);
        };
        if let Ok(id) = commit_id(name) {
            return Ok(id);
        }
        let (branch, tag) = (format!("refs/heads/{name}"), format!("refs/tags/{name}"));
        // A tag with a message is an object of its own; what it stands for is listed behind it.
        let found = self
            .ask(&address, &[&branch, &format!("{tag}^{{}}"), &tag])
            .await?;
        Ok(found.ok_or_else(|| Error::BranchMissing {
            url: url.to_owned(),
            branch: name.to_owned(),
        })?)
    }

    async fn export(&self, url: &str, commit: &CommitId, directory: &Path) -> Result<(), Fault> {
        let address = Address::parse(url)?;
        let there = self.layout.base(address.key());
        let is_seen = there.exists() && self.has(&there, commit).await?;
        if !is_seen {
            Base::refresh(&self.git, &self.layout, &address, None).await?;
        }
        if !self.has(&there, commit).await? {
            return Err(Error::BranchMissing {
                url: url.to_owned(),
                branch: commit.as_str().to_owned(),
            }
            .into());
        }
        let aside = make_temporary(self.layout.staging(), "index-")?;
        Ok(fill(&self.git, &there, commit, directory, &aside.path().join("index")).await?)
    }
}
