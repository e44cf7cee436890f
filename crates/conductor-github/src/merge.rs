//! Merges a pull request at exactly one commit; the forge itself compares it with the head (RUN-14).
//!
//! It does not know whether that is wanted: only an effect that a policy allowed leads here.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, PullRequestNumber};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::Merges;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::client::{Call, Client};
use crate::credential::{Grant, Place};

#[async_trait]
impl Merges for Client {
    async fn merge(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
        head: &CommitId,
    ) -> Result<Result<(), String>, Fault> {
        let place = Place::of(repo)?;
        let attempt = format!("merge the pull request {place}#{} at {head}", number.0);
        let id = number.0.to_string();
        let call = self.call(&attempt, Method::PUT, &place, &["pulls", &id, "merge"], &[]);
        let body = Some(json!({ "sha": head.as_str(), "merge_method": "merge" }));
        let reply = self.ask(&place, Grant::Merge, Call { body, ..call }).await?;
        match reply.status {
            status if status.is_success() => Ok(Ok(())),
            // Not mergeable, forbidden by a rule of the repository, another head, or the wrong kind of merge.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                Ok(Err(reply.message()))
            }
            _ => Err(reply.fault(&attempt, self.server_now())),
        }
    }
}
