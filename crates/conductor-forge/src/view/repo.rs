//! Shows the App, its installations, repositories and branches.
//!
//! It knows nothing of conversations.

use serde_json::{Value, json};

use super::{View, node_id};
use crate::git::{CommitFacts, Identity};
use crate::moment::Moment;
use crate::state::{Installation, Permissions, Repo, Role};

impl View<'_> {
    pub(crate) fn app(&self) -> Value {
        let app = &self.state.app;
        json!({
            "id": app.id,
            "slug": app.slug,
            "node_id": node_id("App", app.id),
            "client_id": format!("Iv1.{:016x}", app.id),
            "owner": self.user(&app.bot_login()),
            "name": app.name,
            "description": null,
            "external_url": self.root.web,
            "html_url": format!("{}/apps/{}", self.root.web, app.slug),
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
            "permissions": self.state.installations.values().next().map(|it| &it.permissions).cloned().unwrap_or_default(),
            "events": EVENTS,
            "installations_count": self.state.installations.len(),
        })
    }

    pub(crate) fn installation(&self, installation: &Installation) -> Value {
        let (id, api) = (installation.id, &self.root.api);
        json!({
            "id": id,
            "account": self.user(&installation.account),
            "repository_selection": "all",
            "access_tokens_url": format!("{api}/app/installations/{id}/access_tokens"),
            "repositories_url": format!("{api}/installation/repositories"),
            "html_url": format!("{}/organizations/{}/settings/installations/{id}", self.root.web, installation.account),
            "app_id": self.state.app.id,
            "app_slug": self.state.app.slug,
            "target_id": self.state.users.get(&installation.account).map_or(0, |user| user.id),
            "target_type": "Organization",
            "permissions": installation.permissions,
            "events": EVENTS,
            "created_at": installation.created_at,
            "updated_at": installation.created_at,
            "single_file_name": null,
            "has_multiple_single_files": false,
            "single_file_paths": [],
            "suspended_by": null,
            "suspended_at": null,
        })
    }

    pub(crate) fn token(
        &self,
        text: &str,
        expires_at: Value,
        repos: &[&Repo],
        permissions: &Permissions,
    ) -> Value {
        json!({
            "token": text,
            "expires_at": expires_at,
            "permissions": permissions,
            "repository_selection": "selected",
            "repositories": repos.iter().map(|repo| self.repo(repo)).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn repo(&self, repo: &Repo) -> Value {
        let full_name = repo.full_name();
        let web = format!("{}/{full_name}", self.root.web);
        let api = format!("{}/repos/{full_name}", self.root.api);
        let open_issues = repo
            .issues
            .values()
            .filter(|issue| issue.closed_at.is_none())
            .count();
        let mut shown = json!({
            "id": repo.id,
            "node_id": node_id("Repository", repo.id),
            "name": repo.name,
            "full_name": full_name,
            "owner": self.user(&repo.owner),
            "private": true,
            "visibility": "private",
            "html_url": web,
            "description": null,
            "url": api,
            "git_url": format!("{web}.git"),
            "ssh_url": format!("{web}.git"),
            "clone_url": format!("{web}.git"),
            "svn_url": web,
            "mirror_url": null,
            "homepage": null,
            "language": null,
            "license": null,
            "default_branch": repo.default_branch,
            "has_issues": true,
            "topics": [],
            "open_issues": open_issues,
            "open_issues_count": open_issues,
            "created_at": repo.created_at,
            "updated_at": repo.created_at,
            "pushed_at": repo.created_at,
        });
        for key in REPO_FLAGS {
            shown[*key] = json!(false);
        }
        for key in REPO_COUNTS {
            shown[*key] = json!(0);
        }
        for (key, path) in REPO_URLS {
            shown[*key] = json!(format!("{api}{path}"));
        }
        shown
    }

    pub(crate) fn branch(&self, repo: &Repo, branch: &str, commit: &CommitFacts) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        let page = format!("{}/{}/tree/{branch}", self.root.web, repo.full_name());
        let protected = repo.protected_branches.contains(branch);
        json!({
            "name": branch,
            "commit": self.commit(repo, commit),
            "protected": protected,
            "protection": { "enabled": protected },
            "protection_url": format!("{api}/branches/{branch}/protection"),
            "_links": { "self": format!("{api}/branches/{branch}"), "html": page },
        })
    }

    fn commit(&self, repo: &Repo, commit: &CommitFacts) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        let page = format!("{}/{}/commit", self.root.web, repo.full_name());
        let sha = &commit.sha;
        let person = |who: &Identity, at: Moment| json!({ "name": who.name, "email": who.email, "date": at });
        let parents: Vec<Value> = commit
            .parents
            .iter()
            .map(|sha| json!({ "sha": sha, "url": format!("{api}/commits/{sha}"), "html_url": format!("{page}/{sha}") }))
            .collect();
        json!({
            "sha": sha,
            "node_id": node_id("Commit", repo.id),
            "url": format!("{api}/commits/{sha}"),
            "html_url": format!("{page}/{sha}"),
            "comments_url": format!("{api}/commits/{sha}/comments"),
            "commit": {
                "url": format!("{api}/git/commits/{sha}"),
                "author": person(&commit.author, commit.authored_at),
                "committer": person(&commit.committer, commit.committed_at),
                "message": commit.message,
                "comment_count": 0,
                "tree": { "sha": commit.tree, "url": format!("{api}/git/trees/{}", commit.tree) },
            },
            "author": null,
            "committer": null,
            "parents": parents,
        })
    }

    pub(crate) fn git_ref(&self, repo: &Repo, name: &str, sha: &str) -> Value {
        let api = format!("{}/repos/{}", self.root.api, repo.full_name());
        json!({
            "ref": name,
            "node_id": node_id("Ref", repo.id),
            "url": format!("{api}/git/{name}"),
            "object": { "type": "commit", "sha": sha, "url": format!("{api}/git/commits/{sha}") },
        })
    }

    pub(crate) fn permission(&self, repo: &Repo, login: &str) -> Value {
        let role = repo.role_of(login);
        let name = match role {
            Some(Role::Admin) => "admin",
            Some(Role::Write) => "write",
            Some(Role::Read) => "read",
            None => "none",
        };
        let mut user = self.user(login);
        user["permissions"] = json!({
            "admin": role == Some(Role::Admin),
            "maintain": role == Some(Role::Admin),
            "push": role >= Some(Role::Write),
            "triage": role >= Some(Role::Write),
            "pull": role.is_some(),
        });
        user["role_name"] = json!(name);
        json!({ "permission": name, "role_name": name, "user": user })
    }
}

const EVENTS: &[&str] = &[
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "check_suite",
    "check_run",
    "push",
];

/// What a repository could have or be, and ours never has or is.
const REPO_FLAGS: &[&str] = &[
    "fork",
    "archived",
    "disabled",
    "is_template",
    "allow_forking",
    "web_commit_signoff_required",
    "has_projects",
    "has_wiki",
    "has_pages",
    "has_discussions",
    "has_downloads",
];

/// What is counted at GitHub, and not here.
const REPO_COUNTS: &[&str] = &[
    "size",
    "forks",
    "forks_count",
    "network_count",
    "watchers",
    "watchers_count",
    "stargazers_count",
    "subscribers_count",
];

const REPO_URLS: &[(&str, &str)] = &[
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
];
