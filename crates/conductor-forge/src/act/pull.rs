//! Opens, merges and reviews pull requests.
//!
//! Merging is a real git merge in the bare repository. Only pull requests within one repository exist;
//! forks are not known here.

use crate::act::issue;
use crate::change::Change;
use crate::git::{Identity, Merged};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Merge, Pull, Repo, Review, ReviewComment, Standing, User, Verdict};
use crate::view::{Happening, Mergeable};

#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) draft: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMethod {
    Merge,
    Squash,
}

pub(crate) async fn open(site: &Site, repo: u64, author: &str, proposal: Proposal) -> Result<u64, Refusal> {
    let _turn = site.git_turn.lock().await;
    let record = site.repo(repo)?;
    let dir = site.repo_dir(repo);
    // A head may be written `owner:branch`; other owners would be forks.
    let head = proposal
        .head
        .strip_prefix(&format!("{}:", record.owner))
        .unwrap_or(&proposal.head)
        .to_owned();
    let heads = site.git.heads(&dir).await?;
    let head_sha = heads
        .get(&head)
        .ok_or_else(|| Refusal::invalid("PullRequest", "head", "no such branch"))?;
    let base_sha = heads
        .get(&proposal.base)
        .ok_or_else(|| Refusal::invalid("PullRequest", "base", "no such branch"))?;
    let extent = site.git.size(&dir, base_sha, head_sha).await?;
    if extent.commits == 0 {
        let message = format!("No commits between {} and {head}", proposal.base);
        return Err(Refusal::custom("PullRequest", "head", message));
    }
    let (number, head_sha) = site.change(|change| {
        let existing = change.repo(repo)?.pulls.values().find(|pull| {
            pull.head_branch == head && pull.base_branch == proposal.base && is_open(&record, pull.number)
        });
        if existing.is_some() {
            let message = format!("A pull request already exists for {}:{head}.", record.owner);
            return Err(Refusal::custom("PullRequest", "head", message));
        }
        if proposal.title.trim().is_empty() {
            return Err(Refusal::missing("PullRequest", "title"));
        }
        issue::check_body("PullRequest", proposal.body.as_deref().unwrap_or_default())?;
        let issue = issue::draft(change, repo, author, &proposal.title, proposal.body.as_deref())?;
        let number = issue.number;
        let pull = Pull {
            id: change.state.mint_id(),
            number,
            draft: proposal.draft,
            head_branch: head.clone(),
            head_sha: head_sha.clone(),
            base_branch: proposal.base.clone(),
            base_sha: base_sha.clone(),
            size: extent,
            merge: None,
        };
        let record = change.repo_mut(repo)?;
        record.issues.insert(number, issue);
        record.pulls.insert(number, pull);
        change.tell(
            repo,
            author,
            &Happening::Pull {
                action: "opened",
                number,
            },
        );
        Ok((number, head_sha.clone()))
    })?;
    site.git
        .set_ref(&dir, &format!("refs/pull/{number}/head"), &head_sha)
        .await?;
    Ok(number)
}

fn is_open(repo: &Repo, number: u64) -> bool {
    repo.issues
        .get(&number)
        .is_some_and(|issue| issue.standing == Standing::Open)
}

pub(crate) fn find(repo: &Repo, number: u64) -> Result<&Pull, Refusal> {
    repo.pulls.get(&number).ok_or_else(Refusal::not_found)
}

pub(crate) async fn mergeable(site: &Site, repo: &Repo, pull: &Pull) -> Result<Mergeable, Refusal> {
    let base = repo.heads.get(&pull.base_branch).unwrap_or(&pull.base_sha);
    Ok(
        match site
            .git
            .merge_tree(&site.repo_dir(repo.id), base, &pull.head_sha)
            .await?
        {
            Merged::Tree(_) => Mergeable::Clean,
            Merged::Conflict => Mergeable::Conflicting,
        },
    )
}

/// Merges, provided that the head still is the one the person looked at.
pub(crate) async fn merge(
    site: &Site,
    repo: u64,
    number: u64,
    by: &str,
    method: MergeMethod,
    expected_head: Option<&str>,
) -> Result<String, Refusal> {
    let _turn = site.git_turn.lock().await;
    let record = site.repo(repo)?;
    let pull = find(&record, number)?.clone();
    let title = issue::find(&record, number)?.title.clone();
    if pull.merge.is_some() || !is_open(&record, number) {
        return Err(Refusal::NotMergeable("Pull Request is not mergeable".into()));
    }
    if expected_head.is_some_and(|expected| expected != pull.head_sha) {
        return Err(Refusal::Conflict(
            "Head branch was modified. Review and try the merge again.".into(),
        ));
    }
    let dir = site.repo_dir(repo);
    let base_name = format!("refs/heads/{}", pull.base_branch);
    let base = site
        .git
        .resolve(&dir, &base_name)
        .await?
        .ok_or_else(Refusal::not_found)?;
    let Merged::Tree(tree) = site.git.merge_tree(&dir, &base, &pull.head_sha).await? else {
        return Err(Refusal::NotMergeable("Pull Request is not mergeable".into()));
    };
    let identity = identity(site.look(|state| state.users.get(by).cloned()).as_ref(), by);
    let (message, parents) = match method {
        MergeMethod::Merge => (
            format!(
                "Merge pull request #{number} from {}/{}\n\n{title}\n",
                record.owner, pull.head_branch
            ),
            vec![base.as_str(), pull.head_sha.as_str()],
        ),
        MergeMethod::Squash => (format!("{title} (#{number})\n"), vec![base.as_str()]),
    };
    let commit = site
        .git
        .commit_tree(&dir, &tree, &parents, &message, &identity)
        .await?;
    site.git.move_ref(&dir, &base_name, &commit, Some(&base)).await?;
    site.change(|change| {
        change
            .repo_mut(repo)?
            .heads
            .insert(pull.base_branch.clone(), commit.clone());
        record_merge(change, repo, number, by, &commit)?;
        let (branch, before, after) = (pull.base_branch.clone(), Some(base.clone()), Some(commit.clone()));
        change.tell(
            repo,
            by,
            &Happening::Push {
                branch,
                before,
                after,
            },
        );
        Ok(())
    })?;
    Ok(commit)
}

pub(super) fn record_merge(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    by: &str,
    commit: &str,
) -> Result<(), Refusal> {
    let at = change.now;
    let record = change.repo_mut(repo)?;
    let pull = record.pulls.get_mut(&number).ok_or_else(Refusal::not_found)?;
    pull.merge = Some(Merge {
        commit_sha: commit.to_owned(),
        by: by.to_owned(),
        at,
    });
    let into_default = pull.base_branch == record.default_branch;
    let body = record
        .issues
        .get(&number)
        .and_then(|issue| issue.body.clone())
        .unwrap_or_default();
    issue::close(change, repo, number, by)?;
    if into_default {
        for closed in closing_references(&body) {
            if issue::find(change.repo(repo)?, closed).is_ok() {
                issue::close(change, repo, closed, by)?;
            }
        }
    }
    Ok(())
}

/// Finds the issues that a body says it closes (`Closes #12`).
fn closing_references(body: &str) -> Vec<u64> {
    const KEYWORDS: [&str; 9] = [
        "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
    ];
    let words: Vec<&str> = body.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| KEYWORDS.contains(&pair[0].trim_end_matches(':').to_lowercase().as_str()))
        .filter_map(|pair| pair[1].strip_prefix('#'))
        .filter_map(|number| {
            number
                .trim_end_matches(|c: char| !c.is_ascii_digit())
                .parse()
                .ok()
        })
        .collect()
}

pub(crate) fn review(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    author: &str,
    verdict: Verdict,
    body: &str,
) -> Result<Review, Refusal> {
    let record = change.repo(repo)?;
    let pull = find(record, number)?;
    let own = issue::find(record, number)?.author == author;
    if own && verdict != Verdict::Commented {
        let act = if verdict == Verdict::Approved {
            "approve"
        } else {
            "request changes on"
        };
        return Err(Refusal::Unprocessable(format!(
            "Can not {act} your own pull request"
        )));
    }
    if body.is_empty() && verdict != Verdict::Approved {
        return Err(Refusal::missing("PullRequestReview", "body"));
    }
    issue::check_body("PullRequestReview", body)?;
    let commit_sha = pull.head_sha.clone();
    let id = change.state.mint_id();
    let review = Review {
        id,
        pull: number,
        author: author.to_owned(),
        verdict,
        body: body.to_owned(),
        commit_sha,
        submitted_at: change.now,
    };
    issue::touch(change, repo, number)?;
    change.repo_mut(repo)?.reviews.insert(id, review.clone());
    change.tell(
        repo,
        author,
        &Happening::Review {
            action: "submitted",
            id,
        },
    );
    Ok(review)
}

/// A remark on a line of a pull request.
#[derive(Debug)]
pub(crate) struct Remark {
    pub(crate) review: Option<u64>,
    pub(crate) body: String,
    pub(crate) path: String,
    pub(crate) commit_sha: String,
    pub(crate) line: Option<u64>,
    pub(crate) in_reply_to: Option<u64>,
}

pub(crate) fn remark(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    author: &str,
    remark: Remark,
) -> Result<ReviewComment, Refusal> {
    find(change.repo(repo)?, number)?;
    issue::check_body("PullRequestReviewComment", &remark.body)?;
    let comment = ReviewComment {
        id: change.state.mint_id(),
        pull: number,
        review: remark.review,
        author: author.to_owned(),
        body: remark.body,
        path: remark.path,
        commit_sha: remark.commit_sha,
        line: remark.line,
        in_reply_to: remark.in_reply_to,
        created_at: change.now,
    };
    change
        .repo_mut(repo)?
        .review_comments
        .insert(comment.id, comment.clone());
    Ok(comment)
}

pub(crate) fn identity(user: Option<&User>, login: &str) -> Identity {
    let id = user.map_or(0, |user| user.id);
    Identity {
        name: login.to_owned(),
        email: format!("{id}+{login}@users.noreply.github.com"),
    }
}

#[cfg(test)]
mod tests {
    use super::closing_references;

    #[test]
    fn only_a_keyword_before_a_number_closes_an_issue() {
        assert_eq!(
            closing_references("Closes #12.\n\nfixes: #3, resolves #x, see #4 closed#5"),
            [12, 3]
        );
    }
}
