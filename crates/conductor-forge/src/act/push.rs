//! Notices what git has received since the records last looked: branches moved, made and deleted.
//!
//! Called after every push and at start, so that a push that a killed forge took is noticed later.
//! It does not know how the objects came in.

use std::collections::BTreeMap;

use crate::act::{issue, pull};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::state::{Pull, Repo, Size, Standing};
use crate::view::Happening;

pub(crate) async fn notice(site: &Site, repo: u64, pusher: &str) -> Result<(), Refusal> {
    let _turn = site.git_turn.lock().await;
    let record = site.repo(repo)?;
    let dir = site.repo_dir(repo);
    let heads = site.git.heads(&dir).await?;
    if heads == record.heads {
        return Ok(());
    }
    let mut fates = Vec::new();
    for open in open_pulls(&record) {
        fates.push((open.number, fate(site, &record, &heads, open).await?));
    }
    site.change(|change| {
        let before = std::mem::replace(&mut change.repo_mut(repo)?.heads, heads.clone());
        for (branch, after) in &heads {
            let old = before.get(branch);
            if old != Some(after) {
                let (branch, before, after) = (branch.clone(), old.cloned(), Some(after.clone()));
                change.tell(
                    repo,
                    pusher,
                    &Happening::Push {
                        branch,
                        before,
                        after,
                    },
                );
            }
        }
        for (branch, sha) in before.iter().filter(|(branch, _)| !heads.contains_key(*branch)) {
            let (branch, before) = (branch.clone(), Some(sha.clone()));
            change.tell(
                repo,
                pusher,
                &Happening::Push {
                    branch,
                    before,
                    after: None,
                },
            );
        }
        for (number, fate) in &fates {
            match fate {
                Fate::Unchanged => {}
                Fate::HeadDeleted => issue::close(change, repo, *number, pusher)?,
                Fate::Merged { commit } => pull::record_merge(change, repo, *number, pusher, commit)?,
                Fate::HeadMoved { sha, size } => {
                    issue::touch(change, repo, *number)?;
                    if let Some(pull) = change.repo_mut(repo)?.pulls.get_mut(number) {
                        pull.head_sha.clone_from(sha);
                        pull.size = *size;
                    }
                    change.tell(
                        repo,
                        pusher,
                        &Happening::Pull {
                            action: "synchronize",
                            number: *number,
                        },
                    );
                }
            }
        }
        Ok(())
    })?;
    for (number, fate) in fates {
        if let Fate::HeadMoved { sha, .. } = fate {
            site.git
                .set_ref(&dir, &format!("refs/pull/{number}/head"), &sha)
                .await?;
        }
    }
    Ok(())
}

enum Fate {
    Unchanged,
    HeadDeleted,
    HeadMoved {
        sha: String,
        size: Size,
    },
    /// The base was pushed to a commit that contains the head.
    Merged {
        commit: String,
    },
}

fn open_pulls(repo: &Repo) -> impl Iterator<Item = &Pull> {
    repo.pulls.values().filter(|pull| {
        repo.issues
            .get(&pull.number)
            .is_some_and(|issue| issue.standing == Standing::Open)
    })
}

async fn fate(
    site: &Site,
    record: &Repo,
    heads: &BTreeMap<String, String>,
    pull: &Pull,
) -> Result<Fate, Refusal> {
    let dir = site.repo_dir(record.id);
    let Some(head) = heads.get(&pull.head_branch) else {
        return Ok(Fate::HeadDeleted);
    };
    let base = heads.get(&pull.base_branch);
    let base_moved = base.is_some() && base != record.heads.get(&pull.base_branch);
    if let Some(base) = base
        && base_moved
        && site.git.is_ancestor(&dir, head, base).await?
    {
        return Ok(Fate::Merged { commit: base.clone() });
    }
    if *head == pull.head_sha {
        return Ok(Fate::Unchanged);
    }
    let extent = site.git.size(&dir, base.unwrap_or(&pull.base_sha), head).await?;
    Ok(Fate::HeadMoved {
        sha: head.clone(),
        size: extent,
    })
}
