//! Opens, reads and closes pull requests; merging is apart from it, in a port of its own (RUN-14).
//!
//! A pull request is found by its branch first, so that a repeat opens none. It does not decide what a
//! review or a failed check means for a run.

use std::collections::BTreeMap;

use conductor_domain::fault::Fault;
use conductor_domain::forge::PullRequestState;
use conductor_domain::id::{CommitId, PullRequestNumber, RepoId};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::{NewPullRequest, PastPullRequest, PullRequestReading, ReviewReading};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::client::{Call, Client};
use crate::credential::{Grant, Place};
use crate::model;
use crate::repository::commit_id;

impl Client {
    /// Opens a pull request and returns number and page. If repeated: the one of the same branch is found.
    pub(crate) async fn propose(
        &self,
        repo: &RepoRef,
        new: &NewPullRequest,
    ) -> Result<(PullRequestNumber, String), Fault> {
        let place = Place::of(repo)?;
        if let Some(found) = self.find_pull_request(&place, repo, &new.branch).await? {
            return Ok(found);
        }
        let attempt = format!("open a pull request for {} in {place}", new.branch);
        let call = self.call(&attempt, Method::POST, &place, &["pulls"], &[]);
        let body = json!({
            "head": new.branch,
            "base": repo.base_branch,
            "title": new.title,
            "body": new.body,
            "maintainer_can_modify": false,
        });
        let reply = self
            .ask(
                &place,
                Grant::WritePullRequests,
                Call {
                    body: Some(body),
                    ..call
                },
            )
            .await?;
        if reply.status == StatusCode::UNPROCESSABLE_ENTITY {
            // Someone may have been faster; GitHub's words for that are not a contract, the list is.
            if let Some(found) = self.find_pull_request(&place, repo, &new.branch).await? {
                return Ok(found);
            }
        }
        let opened: model::PullRequest = self.parse(&attempt, &reply)?;
        Ok((PullRequestNumber(opened.number), opened.html_url))
    }

    /// The newest pull request of a branch of this repository, open or not.
    async fn find_pull_request(
        &self,
        place: &Place,
        repo: &RepoRef,
        branch: &str,
    ) -> Result<Option<(PullRequestNumber, String)>, Fault> {
        let attempt = format!("look for the pull request of {branch} in {place}");
        let head = format!("{}:{branch}", place.owner);
        let query = [("head", head.as_str()), ("state", "all"), ("per_page", "100")];
        let call = self.call(&attempt, Method::GET, place, &["pulls"], &query);
        let listed: Vec<model::PullRequest> = self.read(place, Grant::WritePullRequests, call).await?;
        // The filter is checked again: GitHub ignores one that it does not understand.
        let ours = listed.into_iter().filter(|it| {
            it.head.branch == branch && it.head.repo.as_ref().is_some_and(|head| head.id == repo.id.0)
        });
        Ok(ours
            .max_by_key(|it| it.number)
            .map(|it| (PullRequestNumber(it.number), it.html_url)))
    }

    pub(crate) async fn read_pull_request(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
    ) -> Result<PullRequestReading, Fault> {
        let place = Place::of(repo)?;
        let attempt = format!("read the pull request {place}#{}", number.0);
        let id = number.0.to_string();
        // The base first: read after the pull request, a merge in between would look like a base that moved under it.
        let base_head = self
            .read_branch(&place, Grant::ReadPullRequests, &repo.base_branch)
            .await?;
        let call = self.call(&attempt, Method::GET, &place, &["pulls", &id], &[]);
        let found: model::PullRequest = self.read(&place, Grant::ReadPullRequests, call).await?;
        if found.base.repo.as_ref().is_none_or(|base| base.id != repo.id.0) {
            return Err(Fault::permanent(format!(
                "could not {attempt}: it belongs to another repository now"
            )));
        }
        let head = commit_id(&attempt, found.head.sha)?;
        let state = match (found.merged_at.is_some(), found.state.as_str()) {
            (true, _) => PullRequestState::Merged {
                by: found.merged_by.map(|by| by.login),
            },
            (false, "open") => PullRequestState::Open,
            (false, _) => PullRequestState::Closed,
        };
        let (failed_checks, pending_checks) = self.foreign_checks(&place, &head).await?;
        Ok(PullRequestReading {
            state,
            head_repo: found.head.repo.map(|head| RepoId(head.id)),
            base_head,
            changes_requested: self.changes_requested(&place, number, &head).await?,
            failed_checks,
            pending_checks,
            head,
        })
    }

    /// Lists pull requests that are over, the newest first.
    pub(crate) async fn list_past_pull_requests(
        &self,
        repo: &RepoRef,
        most: u8,
    ) -> Result<Vec<PastPullRequest>, Fault> {
        let place = Place::of(repo)?;
        let attempt = format!("list the past pull requests of {place}");
        let most = most.clamp(1, 100).to_string();
        let query = [
            ("state", "closed"),
            ("sort", "created"),
            ("direction", "desc"),
            ("per_page", most.as_str()),
        ];
        let call = self.call(&attempt, Method::GET, &place, &["pulls"], &query);
        let listed: Vec<model::PullRequest> = self.read(&place, Grant::ReadPullRequests, call).await?;
        let over = listed.into_iter().filter(|it| it.state == "closed");
        Ok(over
            .map(|it| PastPullRequest {
                number: PullRequestNumber(it.number),
                title: it.title,
                by: it.user.map(|user| user.login),
                is_merged: it.merged_at.is_some(),
            })
            .collect())
    }

    /// Closes a pull request. If repeated: it is closed already.
    pub(crate) async fn withdraw(&self, repo: &RepoRef, number: PullRequestNumber) -> Result<(), Fault> {
        let place = Place::of(repo)?;
        let attempt = format!("close the pull request {place}#{}", number.0);
        let id = number.0.to_string();
        let call = self.call(&attempt, Method::PATCH, &place, &["pulls", &id], &[]);
        let body = Some(json!({ "state": "closed" }));
        let _: model::PullRequest = self
            .read(&place, Grant::WritePullRequests, Call { body, ..call })
            .await?;
        Ok(())
    }

    /// The demands for changes by people who may write, unless they have approved since (S-53); oldest first.
    async fn changes_requested(
        &self,
        place: &Place,
        number: PullRequestNumber,
        head: &CommitId,
    ) -> Result<Vec<ReviewReading>, Fault> {
        let attempt = format!("read the reviews of {place}#{}", number.0);
        let id = number.0.to_string();
        let path = ["pulls", id.as_str(), "reviews"];
        let call = self.call(&attempt, Method::GET, place, &path, &[("per_page", "100")]);
        let reviews: Vec<model::Review> = self.read_all(place, Grant::ReadPullRequests, call).await?;
        let mut writers = BTreeMap::new();
        let mut demands = Vec::new();
        for review in standing_demands(reviews, head.as_str()) {
            let Some(author) = &review.user else { continue };
            let may_write = match writers.get(&author.login) {
                Some(known) => *known,
                None => self.may_write(place, &author.login).await?,
            };
            writers.insert(author.login.clone(), may_write);
            if may_write {
                demands.push(ReviewReading {
                    id: review.id,
                    by: author.login.clone(),
                    standing: model::standing(Some(author), review.author_association.as_deref()),
                    text: self.review_text(place, number, &review).await?,
                    commit: review.commit_id.map(|sha| commit_id(&attempt, sha)).transpose()?,
                });
            }
        }
        Ok(demands)
    }

    async fn may_write(&self, place: &Place, login: &str) -> Result<bool, Fault> {
        let attempt = format!("read what {login} may do in {place}");
        let call = self.call(
            &attempt,
            Method::GET,
            place,
            &["collaborators", login, "permission"],
            &[],
        );
        let reply = self.ask(place, Grant::ReadPullRequests, call).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        let found: model::Permission = self.parse(&attempt, &reply)?;
        Ok(matches!(
            found.permission.as_str(),
            "admin" | "maintain" | "write"
        ))
    }

    /// What a review says, its remarks on lines included.
    async fn review_text(
        &self,
        place: &Place,
        number: PullRequestNumber,
        review: &model::Review,
    ) -> Result<String, Fault> {
        let attempt = format!("read the remarks of a review of {place}#{}", number.0);
        let (pull, id) = (number.0.to_string(), review.id.to_string());
        let path = ["pulls", pull.as_str(), "reviews", id.as_str(), "comments"];
        let call = self.call(&attempt, Method::GET, place, &path, &[("per_page", "100")]);
        let remarks: Vec<model::ReviewComment> = self.read_all(place, Grant::ReadPullRequests, call).await?;
        let remarks = remarks.into_iter().map(|remark| {
            let line = remark.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{}{line}: {}", remark.path, remark.body.unwrap_or_default())
        });
        let parts: Vec<String> = review
            .body
            .clone()
            .into_iter()
            .filter(|body| !body.is_empty())
            .chain(remarks)
            .collect();
        Ok(parts.join("\n\n"))
    }
}

/// What asks for changes since its author last approved or was dismissed; oldest first. Of what somebody said about
/// earlier commits only the newest words stand, or a long review would cost more calls with each push.
fn standing_demands(reviews: Vec<model::Review>, head: &str) -> Vec<model::Review> {
    let author = |review: &model::Review| review.user.as_ref().map(|user| user.login.clone());
    let mut demands: Vec<model::Review> = Vec::new();
    for review in reviews {
        let about = review.commit_id.as_deref();
        match review.state.as_str() {
            "APPROVED" | "DISMISSED" => demands.retain(|earlier| author(earlier) != author(&review)),
            "CHANGES_REQUESTED" => {
                demands.retain(|earlier| {
                    let commit = earlier.commit_id.as_deref();
                    author(earlier) != author(&review)
                        || commit == Some(head)
                        || (commit.is_some() && commit == about)
                });
                demands.push(review);
            }
            _ => {}
        }
    }
    demands
}

#[cfg(test)]
mod tests {
    use super::standing_demands;
    use crate::model;

    fn review(id: u64, login: &str, state: &str, commit: &str) -> model::Review {
        let user = Some(model::Account {
            login: login.into(),
            kind: None,
        });
        model::Review {
            id,
            user,
            body: None,
            state: state.into(),
            author_association: None,
            commit_id: Some(commit.into()),
        }
    }

    /// The ids of what stands of these reviews, on the commit `head` unless they say another.
    fn demands(reviews: &[(u64, &str, &str)]) -> Vec<u64> {
        let reviews = reviews
            .iter()
            .map(|(id, login, state)| {
                let (state, commit) = state.split_once(" on ").unwrap_or((state, "head"));
                review(*id, login, state, commit)
            })
            .collect();
        standing_demands(reviews, "head")
            .into_iter()
            .map(|review| review.id)
            .collect()
    }

    /// RUN-10, S-53.
    #[test]
    fn a_demand_stands_until_the_same_person_approves_or_it_is_dismissed() {
        let (ask, yes) = ("CHANGES_REQUESTED", "APPROVED");
        assert_eq!(demands(&[(1, "ann", ask), (2, "bob", yes)]), [1]);
        assert_eq!(demands(&[(1, "ann", ask), (2, "ann", yes)]), Vec::<u64>::new());
        assert_eq!(demands(&[(1, "ann", ask), (2, "ann", "COMMENTED")]), [1]);
        assert_eq!(
            demands(&[(1, "ann", ask), (2, "ann", "DISMISSED")]),
            Vec::<u64>::new()
        );
        assert_eq!(demands(&[(1, "ann", ask), (2, "ann", yes), (3, "ann", ask)]), [3]);
    }

    /// RUN-10: as GitHub lists them: oldest first, a dismissal in the place of what it dismissed, a comment between, an
    /// author whose account is gone.
    #[test]
    fn reviews_as_github_lists_them_are_read() {
        let listed = |id: u64, login: Option<&str>, state: &str| {
            let user = login.map(|login| serde_json::json!({ "login": login, "id": 7, "type": "User" }));
            serde_json::json!({
                "id": id,
                "node_id": "PRR_kwDOA",
                "user": user,
                "body": "Please.",
                "state": state,
                "html_url": format!("https://github.com/acme/widgets/pull/4#pullrequestreview-{id}"),
                "author_association": "COLLABORATOR",
                "_links": { "html": { "href": "https://github.com" } },
                "submitted_at": "2026-05-04T09:12:31Z",
                "commit_id": "head",
            })
        };
        let page = serde_json::json!([
            listed(80, Some("ann"), "DISMISSED"),
            listed(81, Some("bob"), "CHANGES_REQUESTED"),
            listed(82, Some("ann"), "CHANGES_REQUESTED"),
            listed(83, Some("bob"), "COMMENTED"),
            listed(84, None, "CHANGES_REQUESTED"),
            listed(85, Some("ann"), "CHANGES_REQUESTED"),
            listed(86, Some("cleo"), "PENDING"),
        ]);
        let reviews: Vec<model::Review> = serde_json::from_value(page).expect("reviews");
        let standing = standing_demands(reviews, "head").into_iter();
        assert_eq!(
            standing.map(|review| review.id).collect::<Vec<_>>(),
            [81, 82, 84, 85]
        );
    }

    /// RUN-10: who asks twice, or while somebody else asks, is heard as a whole.
    #[test]
    fn every_demand_stands_until_its_author_speaks_of_another_commit() {
        let ask = "CHANGES_REQUESTED";
        let (before, earlier) = ("CHANGES_REQUESTED on before", "CHANGES_REQUESTED on earlier");
        assert_eq!(
            demands(&[(1, "ann", ask), (2, "bob", ask), (3, "ann", ask)]),
            [1, 2, 3]
        );
        assert_eq!(
            demands(&[(1, "ann", before), (2, "bob", before), (3, "ann", ask)]),
            [2, 3]
        );
        assert_eq!(demands(&[(1, "ann", before), (2, "ann", before)]), [1, 2]);
        assert_eq!(demands(&[(1, "ann", earlier), (2, "ann", before)]), [2]);
        // From a page that was loaded before the push.
        assert_eq!(demands(&[(1, "ann", ask), (2, "ann", before)]), [1, 2]);
    }
}
