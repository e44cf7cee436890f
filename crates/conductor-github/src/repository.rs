//! Reads repositories and branches, deletes run branches, and hands out tokens for git.
//!
//! It does not know git itself; a token goes to whoever runs it, for one host.

use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, RepoId};
use conductor_port::forge::RepoDescription;
use conductor_port::workspace::GitToken;
use reqwest::{Method, StatusCode, Url};
use secrecy::ExposeSecret;

use crate::client::Client;
use crate::credential::{Grant, Place};
use crate::model;

impl Client {
    /// Describes a repository; `None` when there is none that the App may see.
    pub(crate) async fn read_repository(&self, place: &Place) -> Result<Option<RepoDescription>, Fault> {
        if self.installation(place).await?.is_none() {
            return Ok(None);
        }
        let attempt = format!("read the repository {place}");
        let call = self.call(&attempt, Method::GET, place, &[], &[]);
        let reply = self.ask(place, Grant::ReadMetadata, call).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let found: model::Repository = self.parse(&attempt, &reply)?;
        let is_ours = found
            .clone_url
            .parse::<Url>()
            .is_ok_and(|url| self.address.owns_git(&url));
        if !is_ours {
            return Err(Fault::permanent(format!(
                "could not {attempt}: its clone address {} belongs to another site",
                found.clone_url
            )));
        }
        Ok(Some(RepoDescription {
            id: RepoId(found.id),
            owner: found.owner.login,
            name: found.name,
            clone_url: found.clone_url,
            default_branch: found.default_branch.unwrap_or_else(|| "main".to_owned()),
        }))
    }

    /// The commit that a branch points to; `None` when there is no such branch.
    pub(crate) async fn read_branch(
        &self,
        place: &Place,
        grant: Grant,
        branch: &str,
    ) -> Result<Option<CommitId>, Fault> {
        let attempt = format!("read the branch {branch} of {place}");
        let call = self.call(&attempt, Method::GET, place, &["branches", branch], &[]);
        let reply = self.ask(place, grant, call).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let found: model::Branch = self.parse(&attempt, &reply)?;
        commit_id(&attempt, found.commit.sha).map(Some)
    }

    /// A token with which git may fetch from and push to this repository, and nothing else.
    pub(crate) async fn push_token(&self, place: &Place) -> Result<GitToken, Fault> {
        let token = self.token(place, Grant::WriteContents).await?;
        Ok(GitToken(token.text.expose_secret().to_owned()))
    }
}

/// Parses an object id of an answer; nothing else may become a revision (S-8).
pub(crate) fn commit_id(attempt: &str, text: String) -> Result<CommitId, Fault> {
    CommitId::parse(text).map_err(|error| {
        Fault::permanent(format!(
            "could not {attempt}: GitHub's answer cannot be understood: {error}"
        ))
    })
}
