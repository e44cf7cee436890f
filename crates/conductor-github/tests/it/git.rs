//! Real git through the forge with the token that the client hands out.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use conductor_port::forge::Forge as _;
use conductor_port::workspace::GitToken;

use crate::site::{BRANCH, REPO, Site, git, git_command};

/// Answers git's questions as Conductor does: the token through a program, never in argv or URL.
fn askpass(dir: &Path, token: &GitToken) -> std::path::PathBuf {
    let path = dir.join("askpass.sh");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in Username*) echo x-access-token;; *) echo '{}';; esac\n",
        token.0
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

struct Outcome {
    ok: bool,
    stderr: String,
}

fn authed(dir: &Path, askpass: &Path, args: &[&str]) -> Outcome {
    let output = git_command(dir, args)
        .env("GIT_ASKPASS", askpass)
        .output()
        .unwrap();
    Outcome {
        ok: output.status.success(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// GH-1, S-12: clone and push with an installation token.
#[tokio::test(flavor = "multi_thread")]
async fn git_clones_and_pushes_with_an_installation_token() {
    let site = Site::start().await;
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap();
    let (home, work) = (site.path(""), site.path("work"));
    let askpass = askpass(&home, &token);
    let cloned = authed(
        &home,
        &askpass,
        &["clone", "--quiet", &site.repo.clone_url, "work"],
    );
    assert!(cloned.ok, "{}", cloned.stderr);
    std::fs::write(work.join("NEWS.md"), "news\n").unwrap();
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "--quiet", "-m", "Add news"]);
    let sha = git(&work, &["rev-parse", "HEAD"]);
    let target = format!("HEAD:refs/heads/{BRANCH}");
    let pushed = authed(
        &work,
        &askpass,
        &["push", "--quiet", &site.repo.clone_url, &target],
    );
    assert!(pushed.ok, "{}", pushed.stderr);
    assert_eq!(
        site.forge.branch(REPO, BRANCH).unwrap().as_deref(),
        Some(sha.trim())
    );
}

/// GH-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_repository_or_a_wrong_one_opens_nothing() {
    let site = Site::start().await;
    let other = site.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("secret"), "secret").unwrap();
    site.forge
        .import_repository("acme", "vault", &other)
        .await
        .unwrap();
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap();
    let home = site.path("");
    let vault = site.forge.clone_url("acme/vault");
    let cloned = authed(
        &home,
        &askpass(&home, &token),
        &["clone", "--quiet", &vault, "stolen"],
    );
    assert!(
        !cloned.ok && cloned.stderr.contains("not found"),
        "{}",
        cloned.stderr
    );
    let wrong = askpass(&home, &GitToken("ghs_wrong".into()));
    let cloned = authed(
        &home,
        &wrong,
        &["clone", "--quiet", &site.repo.clone_url, "stolen"],
    );
    assert!(
        !cloned.ok && cloned.stderr.contains("Authentication failed"),
        "{}",
        cloned.stderr
    );
    assert!(!site.path("stolen").exists());
}

/// GH-8.
#[tokio::test(flavor = "multi_thread")]
async fn a_protected_branch_refuses_a_push_and_stays_where_it_was() {
    let site = Site::start().await;
    site.forge.protect_branch(REPO, "main").unwrap();
    let before = site.forge.branch(REPO, "main").unwrap();
    let token = site.client.git_token(&site.repo).await.unwrap().unwrap();
    let (home, work) = (site.path(""), site.path("work"));
    let askpass = askpass(&home, &token);
    assert!(
        authed(
            &home,
            &askpass,
            &["clone", "--quiet", &site.repo.clone_url, "work"]
        )
        .ok
    );
    git(&work, &["commit", "--quiet", "--allow-empty", "-m", "Sneak in"]);
    let pushed = authed(
        &work,
        &askpass,
        &["push", "--quiet", &site.repo.clone_url, "HEAD:refs/heads/main"],
    );
    assert!(
        !pushed.ok && pushed.stderr.contains("Protected branch"),
        "{}",
        pushed.stderr
    );
    assert_eq!(site.forge.branch(REPO, "main").unwrap(), before);
}
