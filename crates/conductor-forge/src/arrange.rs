//! Lets the owner of the process arrange a running forge and look at what is there.
//!
//! These are the acts of whoever runs the site: repositories, accounts, rights, other Apps' checks. What
//! people do at it is in [`Human`]; how it answers programs is elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::act::check::{self, CheckEdit};
use crate::act::pull;
use crate::auth;
use crate::fault::Faults;
use crate::forge::{Forge, Webhook};
use crate::hook::Delivery;
use crate::human::Human;
use crate::refusal::Refusal;
use crate::state::{
    AccountKind, Board, BoardField, CheckApp, CheckRun, CheckStatus, Comment, Conclusion, Holder, Hook,
    Installation, Issue, Level, Permissions, Pull, Repo, Role, Scope, State, User,
};

impl Forge {
    pub fn faults(&self) -> &Faults {
        &self.site.faults
    }

    /// Lets the site's clock run ahead (or behind, if negative) of the machine's.
    pub fn shift_clock(&self, seconds: i64) {
        self.site.clock.shift(seconds);
    }

    pub fn set_webhook(&self, webhook: Option<Webhook>) -> Result<(), Refusal> {
        self.site.change(|change| {
            change.state.hook = webhook.map(|Webhook { url, secret }| Hook { url, secret });
            Ok(())
        })
    }

    /// All deliveries, newest first.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.site.hooks.list()
    }

    /// Waits until every delivery has had its attempt.
    pub async fn deliveries_settled(&self) {
        self.site.hooks.settled().await;
    }

    pub fn redeliver(&self, id: u64) -> Result<(), Refusal> {
        self.site.hooks.redeliver(id, self.site.clock.now())
    }

    /// Makes a repository from a git repository or a plain directory, with the App installed on its owner.
    pub async fn import_repository(&self, owner: &str, name: &str, from: &Path) -> Result<u64, Refusal> {
        check_name(owner)?;
        check_name(name)?;
        if self.site.look(|state| state.repo_named(owner, name).is_some()) {
            return Err(Refusal::custom(
                "Repository",
                "name",
                "name already exists on this account",
            ));
        }
        let id = self.site.change(|change| Ok(change.state.mint_id()))?;
        let dir = self.site.repo_dir(id);
        let _ = fs::remove_dir_all(&dir);
        self.site
            .git
            .import(from, &dir, &pull::identity(None, owner))
            .await?;
        let default_branch = self.site.git.default_branch(&dir).await?;
        let heads = self.site.git.heads(&dir).await?;
        self.site.change(|change| {
            let now = change.now;
            found_user(&mut change.state, owner, AccountKind::Organization);
            if change.state.installation_of(owner).is_none() {
                let installation = change.state.mint_id();
                let record = Installation {
                    id: installation,
                    account: owner.to_owned(),
                    permissions: usual_permissions(),
                    created_at: now,
                };
                change.state.installations.insert(installation, record);
            }
            let repo = Repo {
                id,
                owner: owner.to_owned(),
                name: name.to_owned(),
                former_names: Vec::new(),
                default_branch,
                created_at: now,
                roles: BTreeMap::new(),
                protected_branches: BTreeSet::new(),
                heads,
                last_number: 0,
                issues: BTreeMap::new(),
                comments: BTreeMap::new(),
                pulls: BTreeMap::new(),
                reviews: BTreeMap::new(),
                review_comments: BTreeMap::new(),
                check_suites: BTreeMap::new(),
                check_runs: BTreeMap::new(),
            };
            change.state.repos.insert(id, Arc::new(repo));
            Ok(id)
        })
    }

    /// Renames a repository; its old name answers 301 from then on.
    pub fn rename_repository(&self, repo: &str, new_name: &str) -> Result<(), Refusal> {
        check_name(new_name)?;
        let id = self.repository(repo)?.id;
        self.site.change(|change| {
            let record = change.repo_mut(id)?;
            let old = std::mem::replace(&mut record.name, new_name.to_owned());
            record.former_names.push((record.owner.clone(), old));
            Ok(())
        })
    }

    /// Refuses pushes to a branch, by a hook of the bare repository; merging still moves it.
    pub fn protect_branch(&self, repo: &str, branch: &str) -> Result<(), Refusal> {
        let id = self.repository(repo)?.id;
        let protected = self.site.change(|change| {
            let record = change.repo_mut(id)?;
            record.protected_branches.insert(branch.to_owned());
            Ok(record.protected_branches.clone())
        })?;
        let refs: Vec<String> = protected
            .iter()
            .map(|branch| format!("refs/heads/{branch}"))
            .collect();
        self.rule(id, "protected", &refs)
            .map_err(|error| Refusal::Broken(format!("cannot protect {branch}: {error}")))
    }

    /// Refuses pushes of any commit that touches a path, as a rule set does.
    pub fn restrict_path(&self, repo: &str, path: &str) -> Result<(), Refusal> {
        let id = self.repository(repo)?.id;
        self.rule(id, "restricted", &[path.to_owned()])
            .map_err(|error| Refusal::Broken(format!("cannot restrict {path}: {error}")))
    }

    /// Writes the lines of a rule, and the hook that enforces every rule.
    fn rule(&self, repo: u64, name: &str, lines: &[String]) -> std::io::Result<()> {
        let hooks = self.site.repo_dir(repo).join("hooks");
        fs::create_dir_all(&hooks)?;
        fs::write(hooks.join(name), lines.join("\n") + "\n")?;
        let hook = hooks.join("update");
        fs::write(&hook, RULES_HOOK)?;
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755))
    }

    /// Makes a person known; repeated, it is the same person.
    pub fn create_user(&self, login: &str) -> Result<Human, Refusal> {
        check_name(login)?;
        self.site.change(|change| {
            found_user(&mut change.state, login, AccountKind::User);
            Ok(())
        })?;
        Ok(Human::new(Arc::clone(&self.site), login))
    }

    /// Takes back what somebody might do; what they wrote stays, by somebody who is nothing to the repository.
    pub fn revoke(&self, repo: &str, login: &str) -> Result<(), Refusal> {
        let id = self.repository(repo)?.id;
        self.site.change(|change| {
            change.repo_mut(id)?.roles.remove(login);
            Ok(())
        })
    }

    pub fn grant(&self, repo: &str, login: &str, role: Role) -> Result<(), Refusal> {
        let id = self.repository(repo)?.id;
        self.site.change(|change| {
            change.repo_mut(id)?.roles.insert(login.to_owned(), role);
            Ok(())
        })
    }

    /// A token with which a person's own programs may call the REST interface and push.
    pub fn personal_token(&self, login: &str) -> Result<String, Refusal> {
        auth::mint(
            &self.site,
            Holder::Person {
                login: login.to_owned(),
            },
        )
        .map(|(text, _)| text)
    }

    pub fn installation_id(&self, owner: &str) -> Option<u64> {
        self.site
            .look(|state| state.installation_of(owner).map(|installation| installation.id))
    }

    /// Narrows or widens what the App may do on an account.
    pub fn set_permissions(&self, owner: &str, permissions: Permissions) -> Result<(), Refusal> {
        let id = self.installation_id(owner).ok_or_else(Refusal::not_found)?;
        self.site.change(|change| {
            let installation = change
                .state
                .installations
                .get_mut(&id)
                .ok_or_else(Refusal::not_found)?;
            installation.permissions = permissions;
            Ok(())
        })
    }

    /// Makes a project board with fields of these names and kinds; returns its number.
    pub fn create_board(&self, owner: &str, fields: &[(&str, &str)]) -> Result<u32, Refusal> {
        self.site.change(|change| {
            let fields = fields
                .iter()
                .map(|(name, data_type)| BoardField {
                    id: change.state.mint_id(),
                    name: (*name).to_owned(),
                    data_type: (*data_type).to_owned(),
                })
                .collect();
            let number = change
                .state
                .boards
                .iter()
                .filter(|board| board.owner == owner)
                .count();
            let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
            change.state.boards.push(Board {
                owner: owner.to_owned(),
                number,
                created_at: change.now,
                fields,
                items: Vec::new(),
            });
            Ok(number)
        })
    }

    /// What the fields of an issue say on a board, by their names.
    pub fn board_values(
        &self,
        owner: &str,
        board: u32,
        issue: u64,
    ) -> Result<BTreeMap<String, String>, Refusal> {
        self.site.look(|state| {
            let board = crate::act::board::find(&state.boards, owner, board)?;
            let items = board.items.iter().filter(|item| item.issue == issue);
            let name = |id: &u64| board.fields.iter().find(|field| field.id == *id);
            Ok(items
                .flat_map(|item| &item.values)
                .filter_map(|(id, value)| Some((name(id)?.name.clone(), value.clone())))
                .collect())
        })
    }

    /// How many issues stand on a board.
    pub fn board_items(&self, owner: &str, board: u32) -> Result<usize, Refusal> {
        self.site
            .look(|state| Ok(crate::act::board::find(&state.boards, owner, board)?.items.len()))
    }

    /// Lets a check of another App (a CI) report on a commit; its suite completes with it.
    pub fn report_check(
        &self,
        repo: &str,
        sha: &str,
        app_slug: &str,
        name: &str,
        conclusion: Conclusion,
    ) -> Result<CheckRun, Refusal> {
        let id = self.repository(repo)?.id;
        let edit = CheckEdit {
            name: Some(name.to_owned()),
            status: Some(CheckStatus::Completed),
            conclusion: Some(conclusion),
            title: Some(format!("{name} has ended")),
            summary: Some(format!("{app_slug} looked at {sha}.")),
            ..CheckEdit::default()
        };
        let app = CheckApp::Other {
            slug: app_slug.to_owned(),
        };
        self.site
            .change(|change| check::create(change, id, &app, &format!("{app_slug}[bot]"), sha, edit))
    }

    pub fn repository(&self, repo: &str) -> Result<Repo, Refusal> {
        let (owner, name) = repo.split_once('/').ok_or_else(Refusal::not_found)?;
        let found = self.site.look(|state| state.repo_named(owner, name).cloned());
        found.map(Arc::unwrap_or_clone).ok_or_else(Refusal::not_found)
    }

    pub fn issue(&self, repo: &str, number: u64) -> Result<Issue, Refusal> {
        self.repository(repo)?
            .issues
            .remove(&number)
            .ok_or_else(Refusal::not_found)
    }

    /// The comments on an issue or pull request, oldest first.
    pub fn comments(&self, repo: &str, number: u64) -> Result<Vec<Comment>, Refusal> {
        let comments = self.repository(repo)?.comments.into_values();
        Ok(comments.filter(|comment| comment.issue == number).collect())
    }

    pub fn pulls(&self, repo: &str) -> Result<Vec<Pull>, Refusal> {
        Ok(self.repository(repo)?.pulls.into_values().collect())
    }

    pub fn check_runs(&self, repo: &str) -> Result<Vec<CheckRun>, Refusal> {
        Ok(self.repository(repo)?.check_runs.into_values().collect())
    }

    /// The commit that a branch points to.
    pub fn branch(&self, repo: &str, branch: &str) -> Result<Option<String>, Refusal> {
        Ok(self.repository(repo)?.heads.remove(branch))
    }
}

/// Runs inside the bare repository while a push is received; its words reach the person who pushed.
const RULES_HOOK: &str = r#"#!/bin/sh
if [ -e hooks/protected ] && grep -qxF -e "$1" hooks/protected; then
  echo "error: GH006: Protected branch update failed for $1." >&2
  exit 1
fi
if [ -e hooks/restricted ] && git log --format= --name-only "$3" --not --all | grep -xFf hooks/restricted >&2; then
  echo "error: GH013: Repository rule violations found for $1: a restricted path" >&2
  exit 1
fi
"#;

fn usual_permissions() -> Permissions {
    Permissions::from([
        (Scope::Checks, Level::Write),
        (Scope::Contents, Level::Write),
        (Scope::Issues, Level::Write),
        (Scope::Metadata, Level::Read),
        (Scope::OrganizationProjects, Level::Write),
        (Scope::PullRequests, Level::Write),
        (Scope::Statuses, Level::Read),
    ])
}

pub(crate) fn found_user(state: &mut State, login: &str, kind: AccountKind) {
    if !state.users.contains_key(login) {
        let id = state.mint_id();
        state.users.insert(
            login.to_owned(),
            User {
                id,
                login: login.to_owned(),
                kind,
            },
        );
    }
}

/// Names become parts of URLs and of git identities.
fn check_name(name: &str) -> Result<(), Refusal> {
    let sound = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if sound {
        Ok(())
    } else {
        Err(Refusal::invalid(
            "Name",
            "name",
            format!("{name:?} is not a name"),
        ))
    }
}
