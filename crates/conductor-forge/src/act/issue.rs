//! Opens, edits, deletes and transfers issues, and comments on them.
//!
//! Pull requests pass through here where they behave as issues: title, body, standing, comments.

use crate::change::Change;
use crate::refusal::Refusal;
use crate::state::{Comment, Issue, Presence, Repo, Standing};
use crate::view::Happening;

/// GitHub's limit on every body, in characters.
pub(crate) const LONGEST_BODY: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct IssueEdit {
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) standing: Option<Standing>,
}

pub(crate) fn open(
    change: &mut Change<'_>,
    repo: u64,
    author: &str,
    title: &str,
    body: Option<&str>,
) -> Result<u64, Refusal> {
    if title.trim().is_empty() {
        return Err(Refusal::missing("Issue", "title"));
    }
    check_body("Issue", body.unwrap_or_default())?;
    let issue = draft(change, repo, author, title, body)?;
    let number = issue.number;
    change.repo_mut(repo)?.issues.insert(number, issue);
    change.tell(
        repo,
        author,
        &Happening::Issue {
            action: "opened",
            number,
        },
    );
    Ok(number)
}

/// Takes the next number of the repository; issues and pull requests share the sequence.
pub(super) fn draft(
    change: &mut Change<'_>,
    repo: u64,
    author: &str,
    title: &str,
    body: Option<&str>,
) -> Result<Issue, Refusal> {
    let (id, now) = (change.state.mint_id(), change.now);
    let record = change.repo_mut(repo)?;
    record.last_number += 1;
    Ok(Issue {
        id,
        number: record.last_number,
        title: title.to_owned(),
        body: body.map(str::to_owned),
        standing: Standing::Open,
        presence: Presence::Here,
        author: author.to_owned(),
        labels: Vec::new(),
        created_at: now,
        updated_at: now,
        closed_at: None,
        closed_by: None,
    })
}

/// Reads an issue as a client would: deleted ones are gone, transferred ones have moved.
pub(crate) fn find(repo: &Repo, number: u64) -> Result<&Issue, Refusal> {
    let issue = repo.issues.get(&number).ok_or_else(Refusal::not_found)?;
    match &issue.presence {
        Presence::Here => Ok(issue),
        Presence::Deleted => Err(Refusal::Gone("This issue was deleted".into())),
        Presence::Moved { repo, number } => Err(Refusal::Moved {
            location: format!("/repositories/{repo}/issues/{number}"),
        }),
    }
}

pub(crate) fn edit(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    editor: &str,
    edit: IssueEdit,
) -> Result<(), Refusal> {
    find(change.repo(repo)?, number)?;
    check_body("Issue", edit.body.as_deref().unwrap_or_default())?;
    if edit.title.as_deref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Refusal::missing("Issue", "title"));
    }
    if edit.title.is_some() || edit.body.is_some() {
        let issue = touch(change, repo, number)?;
        if let Some(title) = edit.title {
            issue.title = title;
        }
        if let Some(body) = edit.body {
            issue.body = Some(body);
        }
        tell(change, repo, number, editor, "edited")?;
    }
    match edit.standing {
        Some(Standing::Closed) => close(change, repo, number, editor),
        Some(Standing::Open) => reopen(change, repo, number, editor),
        None => Ok(()),
    }
}

pub(crate) fn close(change: &mut Change<'_>, repo: u64, number: u64, by: &str) -> Result<(), Refusal> {
    let now = change.now;
    let issue = touch(change, repo, number)?;
    if issue.standing == Standing::Closed {
        return Ok(());
    }
    issue.standing = Standing::Closed;
    issue.closed_at = Some(now);
    issue.closed_by = Some(by.to_owned());
    tell(change, repo, number, by, "closed")
}

fn reopen(change: &mut Change<'_>, repo: u64, number: u64, by: &str) -> Result<(), Refusal> {
    let record = change.repo(repo)?;
    if let Some(pull) = record.pulls.get(&number) {
        if pull.merge.is_some() {
            return Err(Refusal::invalid(
                "PullRequest",
                "state",
                "a merged pull request cannot be reopened",
            ));
        }
        if !record.heads.contains_key(&pull.head_branch) {
            return Err(Refusal::invalid(
                "PullRequest",
                "state",
                "the head branch was deleted",
            ));
        }
    }
    let issue = touch(change, repo, number)?;
    if issue.standing == Standing::Open {
        return Ok(());
    }
    issue.standing = Standing::Open;
    issue.closed_at = None;
    issue.closed_by = None;
    tell(change, repo, number, by, "reopened")
}

/// Deletes an issue; from then on it answers 410.
pub(crate) fn delete(change: &mut Change<'_>, repo: u64, number: u64, by: &str) -> Result<(), Refusal> {
    change.tell(
        repo,
        by,
        &Happening::Issue {
            action: "deleted",
            number,
        },
    );
    touch(change, repo, number)?.presence = Presence::Deleted;
    Ok(())
}

/// Moves an issue to another repository; its old number answers 301 from then on.
pub(crate) fn transfer(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    to: u64,
    by: &str,
) -> Result<u64, Refusal> {
    let issue = find(change.repo(repo)?, number)?.clone();
    change.tell(
        repo,
        by,
        &Happening::Issue {
            action: "transferred",
            number,
        },
    );
    let moved = open(change, to, &issue.author, &issue.title, issue.body.as_deref())?;
    touch(change, repo, number)?.presence = Presence::Moved {
        repo: to,
        number: moved,
    };
    Ok(moved)
}

pub(crate) fn comment(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    author: &str,
    body: &str,
) -> Result<Comment, Refusal> {
    find(change.repo(repo)?, number)?;
    if body.is_empty() {
        return Err(Refusal::missing("IssueComment", "body"));
    }
    check_body("IssueComment", body)?;
    let (id, now) = (change.state.mint_id(), change.now);
    let comment = Comment {
        id,
        issue: number,
        author: author.to_owned(),
        body: body.to_owned(),
        created_at: now,
        updated_at: now,
    };
    touch(change, repo, number)?;
    change.repo_mut(repo)?.comments.insert(id, comment.clone());
    change.tell(
        repo,
        author,
        &Happening::Comment {
            action: "created",
            id,
        },
    );
    Ok(comment)
}

pub(crate) fn edit_comment(
    change: &mut Change<'_>,
    repo: u64,
    id: u64,
    editor: &str,
    body: &str,
) -> Result<Comment, Refusal> {
    if body.is_empty() {
        return Err(Refusal::missing("IssueComment", "body"));
    }
    check_body("IssueComment", body)?;
    let now = change.now;
    let comment = change
        .repo_mut(repo)?
        .comments
        .get_mut(&id)
        .ok_or_else(Refusal::not_found)?;
    body.clone_into(&mut comment.body);
    comment.updated_at = now;
    let comment = comment.clone();
    change.tell(repo, editor, &Happening::Comment { action: "edited", id });
    Ok(comment)
}

pub(crate) fn delete_comment(
    change: &mut Change<'_>,
    repo: u64,
    id: u64,
    remover: &str,
) -> Result<(), Refusal> {
    if !change.repo_mut(repo)?.comments.contains_key(&id) {
        return Err(Refusal::not_found());
    }
    // Told first: what is told shows the comment.
    change.tell(
        repo,
        remover,
        &Happening::Comment {
            action: "deleted",
            id,
        },
    );
    change.repo_mut(repo)?.comments.remove(&id);
    Ok(())
}

pub(crate) fn check_body(resource: &'static str, body: &str) -> Result<(), Refusal> {
    if body.chars().count() > LONGEST_BODY {
        let message = format!("body is too long (maximum is {LONGEST_BODY} characters)");
        return Err(Refusal::Invalid {
            resource,
            field: "body",
            code: "unprocessable",
            message,
        });
    }
    Ok(())
}

pub(super) fn touch<'c>(
    change: &'c mut Change<'_>,
    repo: u64,
    number: u64,
) -> Result<&'c mut Issue, Refusal> {
    let now = change.now;
    let issue = change
        .repo_mut(repo)?
        .issues
        .get_mut(&number)
        .ok_or_else(Refusal::not_found)?;
    issue.updated_at = now;
    Ok(issue)
}

fn tell(
    change: &mut Change<'_>,
    repo: u64,
    number: u64,
    sender: &str,
    action: &'static str,
) -> Result<(), Refusal> {
    let is_pull = change.repo(repo)?.pulls.contains_key(&number);
    let happening = if is_pull {
        Happening::Pull { action, number }
    } else {
        Happening::Issue { action, number }
    };
    change.tell(repo, sender, &happening);
    Ok(())
}
