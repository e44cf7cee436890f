//! A forge with one repository and one person, and a client signed in to it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::spec::RepoRef;
use conductor_domain::time::{Millis, Timestamp};
use conductor_forge::state::Role;
use conductor_forge::{Edit, Forge, Human, Options};
use conductor_github::{Client, Config};
use conductor_port::clock::Clock;
use conductor_port::forge::Forge as _;
use secrecy::SecretString;
use tempfile::TempDir;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const BRANCH: &str = "conductor/run-1";

/// The machine's clock, which a test may turn.
#[derive(Debug, Default)]
pub(crate) struct TestClock {
    offset_seconds: AtomicI64,
}

impl TestClock {
    pub(crate) fn shift(&self, seconds: i64) {
        self.offset_seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    #[allow(clippy::disallowed_methods, reason = "tests read the machine's clock")]
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let offset = self.offset_seconds.load(Ordering::SeqCst) * 1_000_000;
        Timestamp(i64::try_from(now.as_micros()).unwrap() + offset)
    }
}

pub(crate) struct Site {
    pub(crate) forge: Forge,
    pub(crate) client: Client,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) alice: Human,
    pub(crate) repo: RepoRef,
    dir: TempDir,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let source = dir.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("README.md"), "# Widgets\n").unwrap();
        let forge = Forge::start(Options::in_dir(dir.path().join("forge")))
            .await
            .unwrap();
        forge.import_repository("acme", "widgets", &source).await.unwrap();
        let alice = forge.create_user("alice").unwrap();
        forge.grant(REPO, "alice", Role::Write).unwrap();
        let clock = Arc::new(TestClock::default());
        let client = client_of(&forge, &forge.base_url(), Arc::clone(&clock));
        let repo = describe(&client, "acme", "widgets").await;
        Self {
            forge,
            client,
            clock,
            alice,
            repo,
            dir,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Another client of the same App, with nothing cached.
    pub(crate) fn another_client(&self) -> Client {
        client_of(&self.forge, &self.forge.base_url(), Arc::clone(&self.clock))
    }

    /// A client with the usual settings, which waits for checks that have not begun.
    pub(crate) fn usual_client(&self) -> Client {
        let key = SecretString::from(self.forge.app_key_pem().to_owned());
        let config = Config::new(self.forge.base_url(), self.forge.app_id(), key);
        Client::new(config, self.clock.clone()).unwrap()
    }

    /// Puts a commit on the run's branch, as a push would.
    pub(crate) async fn push_change(&self, content: &str) -> String {
        let main = self.forge.branch(REPO, "main").unwrap().unwrap();
        if self.forge.branch(REPO, BRANCH).unwrap().is_none() {
            let dir = self
                .path("forge")
                .join("repos")
                .join(format!("{}.git", self.repo.id));
            git(&dir, &["update-ref", &format!("refs/heads/{BRANCH}"), &main]);
        }
        let edit = Edit {
            path: "README.md",
            content: Some(content.as_bytes()),
        };
        self.alice
            .commit(REPO, BRANCH, &[edit], "Change the read-me")
            .await
            .unwrap()
    }
}

pub(crate) fn client_of(forge: &Forge, api_url: &str, clock: Arc<TestClock>) -> Client {
    let key = SecretString::from(forge.app_key_pem().to_owned());
    let config = Config {
        patience: Duration::from_secs(5),
        ..Config::new(api_url, forge.app_id(), key).for_stand_in()
    };
    Client::new(config, clock).unwrap()
}

pub(crate) async fn describe(client: &Client, owner: &str, name: &str) -> RepoRef {
    let found = client.repository(owner, name).await.unwrap().unwrap();
    RepoRef {
        id: found.id,
        host: "127.0.0.1".into(),
        owner: found.owner,
        name: found.name,
        clone_url: found.clone_url,
        base_branch: found.default_branch,
    }
}

/// Runs git in a directory with nothing of the machine's configuration, and returns what it printed.
#[allow(clippy::disallowed_methods, reason = "tests drive real git")]
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = git_command(dir, args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[allow(clippy::disallowed_methods, reason = "tests drive real git")]
pub(crate) fn git_command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.invalid");
    command
}

pub(crate) fn transient(fault: &Fault) -> Option<Millis> {
    match fault.kind {
        FaultKind::Transient { retry_after } => Some(retry_after.unwrap_or_default()),
        FaultKind::Conflict | FaultKind::EnvironmentLost | FaultKind::Refused | FaultKind::Permanent => None,
    }
}

pub(crate) fn is_permanent(fault: &Fault) -> bool {
    fault.kind == FaultKind::Permanent
}

/// What a hostile GitHub says: a repository, and lists that go on elsewhere.
#[derive(Clone)]
pub(crate) struct Lies {
    pub(crate) clone_url: String,
    pub(crate) next_page: String,
}

/// Serves lies to whoever asks, until dropped with its runtime.
pub(crate) async fn lying_server(lies: Lies) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 16 * 1024];
            let read = stream.read(&mut request).await.unwrap();
            let line = String::from_utf8_lossy(&request[..read])
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            let Lies { clone_url, next_page } = &lies;
            let body = if line.contains("/comments") {
                "[]".to_owned()
            } else {
                format!(
                    r#"{{"id":1,"token":"ghs_x","slug":"x","name":"widgets","owner":{{"login":"acme"}},"clone_url":"{clone_url}"}}"#
                )
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nlink: <{next_page}>; rel=\"last\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}
