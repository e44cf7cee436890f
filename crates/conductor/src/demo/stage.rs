//! The stage: a temporary directory with a forge, a server, a repository, an issue, and a person who merges.
//!
//! Everything listens on loopback and is gone afterwards. This module does not know what is played on it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conductor_agent::stories;
use conductor_domain::instance::TestEgress;
use conductor_domain::spec::Limits;
use conductor_domain::time::Millis;
use conductor_forge::state::Role;
use conductor_forge::{Forge, Human, MergeMethod, Options, Webhook};
use conductor_gateway::egress::Internet;
use conductor_web::api::{AcceptedView, AddProject, RegisterRepo, RepoView, StartRun, Started};
use secrecy::SecretString;
use tempfile::TempDir;
use tracing_subscriber::EnvFilter;

use crate::client::Client;
use crate::clock::mint_secret;
use crate::command::serve;
use crate::data_dir::DataDir;
use crate::demo::story::{Content, Story};
use crate::executors::Named;
use crate::exit::Failure;
use crate::server::{self, Server, Setup};
use crate::settings::{DatabaseUrl, Listen, ToldInspection};
use crate::storage::Storage;
use crate::wire::RoleSkills;

/// The owner of the repository, the project, and the person who merges.
const OWNER: &str = "demo";
const PERSON: &str = "dana";

/// The stage, set.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The server's door.
    pub(crate) client: Client,
    /// Where the server keeps everything.
    pub(crate) data_dir: DataDir,
    /// `owner/name`.
    pub(crate) repo: String,
    issue: u64,
    person: Human,
    forge: Option<Forge>,
    server: Option<Server>,
    directory: Option<TempDir>,
    path: PathBuf,
}

impl Stage {
    /// Builds the stage for a story.
    pub(crate) async fn build(
        story: &Story,
        executor: Named,
        database_url: Option<DatabaseUrl>,
    ) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("conductor-demo-")
            .tempdir()
            .map_err(|error| Failure::because("making a temporary directory", &error))?;
        let path = directory.path().to_owned();
        log_to(&path.join("conductor.log"));
        let cannot = |attempted: &'static str| {
            move |error: conductor_forge::Refusal| Failure::because(attempted, &error)
        };

        let forge = Forge::start(Options::in_dir(path.join("forge")))
            .await
            .map_err(cannot("starting the forge"))?;
        let from = match &story.content {
            Content::Directory(directory) => directory.clone(),
            Content::BuiltIn(files) => {
                let directory = path.join("story");
                write_files(&directory, files)
                    .map_err(|error| Failure::because("writing the story's files", &error))?;
                directory
            }
        };
        forge
            .import_repository(OWNER, &story.name, &from)
            .await
            .map_err(cannot("importing the repository"))?;
        let repo = format!("{OWNER}/{}", story.name);
        let person = forge.create_user(PERSON).map_err(cannot("adding a person"))?;
        forge
            .grant(&repo, PERSON, Role::Write)
            .map_err(cannot("letting the person in"))?;
        let issue = person
            .open_issue(&repo, &story.title, &story.body)
            .map_err(cannot("opening the issue"))?;

        let data_dir = DataDir::new(path.join("data"));
        let secret = mint_secret();
        let server = Server::start(Setup {
            database_url,
            storage: Storage::new(data_dir.path().to_owned()),
            clock_ahead: Millis(0),
            data_dir: data_dir.clone(),
            listen: Listen::local(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            forge: conductor_github::Config {
                // Nothing checks anything at the demo's forge.
                checks_begin_within: Duration::ZERO,
                ..conductor_github::Config::new(
                    forge.base_url(),
                    forge.app_id(),
                    SecretString::from(forge.app_key_pem().to_owned()),
                )
            },
            webhook_secret: Some(SecretString::from(secret.clone())),
            public_url: None,
            executor,
            toolchain: serve::toolchain().await,
            scenario: Some(story.scenario.clone()),
            lease: server::LEASE,
            ports: conductor_engine::PortRange::USUAL,
            egress: vec![],
            inspection: ToldInspection::default(),
            notify: None,
            skills: RoleSkills::default(),
            outside: Arc::new(Internet),
            limits: Limits {
                poll: Millis::seconds(5),
                ..Limits::default()
            },
        })
        .await?;
        let url = format!("{}/webhooks/github", server.file().url);
        forge
            .set_webhook(Some(Webhook { url, secret }))
            .map_err(cannot("pointing webhooks at the server"))?;

        let client = Client::new(server.file())?;
        let _: AcceptedView = client
            .post(
                "/projects",
                &AddProject {
                    name: OWNER.to_owned(),
                },
            )
            .await?;
        let wish = RegisterRepo {
            project: OWNER.to_owned(),
            repo: repo.clone(),
            test_command: story.test_command.clone(),
            slots: None,
            base_branch: None,
            test_egress: TestEgress::None,
            board: None,
        };
        let _: RepoView = client.post("/repos", &wish).await?;
        let (forge, server, directory) = (Some(forge), Some(server), Some(directory));
        Ok(Self {
            client,
            data_dir,
            repo,
            issue,
            person,
            forge,
            server,
            directory,
            path,
        })
    }

    /// Starts the run.
    pub(crate) async fn start_run(&self) -> Result<Started, Failure> {
        let wish = StartRun {
            repo: self.repo.clone(),
            issue: self.issue,
            priority: None,
            scenario: None,
            policy: None,
        };
        self.client.post("/runs", &wish).await
    }

    /// Lets the person merge a pull request at the forge.
    pub(crate) async fn merge(&self, number: u64) -> Result<String, Failure> {
        self.person
            .merge(&self.repo, number, MergeMethod::Merge)
            .await
            .map_err(|error| Failure::because(format!("merging pull request #{number}"), &error))
    }

    /// The person who merges.
    pub(crate) fn person(&self) -> &str {
        self.person.login()
    }

    /// The server's address.
    pub(crate) fn url(&self) -> &str {
        self.client.url()
    }

    /// The forge's address.
    pub(crate) fn forge_url(&self) -> String {
        self.forge.as_ref().map(Forge::base_url).unwrap_or_default()
    }

    /// The commands that look around on the stage.
    pub(crate) fn look_around(&self) -> String {
        // As it was started: after `cargo xtask demo` nothing of that name is on the PATH.
        let program = std::env::args_os().next().unwrap_or_else(|| "conductor".into());
        let (program, data_dir) = (program.display(), self.data_dir.path().display());
        format!("{program} --data-dir {data_dir} open\n  {program} --data-dir {data_dir} run list")
    }

    /// How many working directories are left.
    pub(crate) fn worktrees_left(&self) -> usize {
        std::fs::read_dir(self.data_dir.worktrees()).map_or(0, Iterator::count)
    }

    /// Stops everything and removes it.
    pub(crate) async fn tear_down(mut self) -> Result<(), Failure> {
        self.stop().await?;
        let directory = self.directory.take();
        directory.map_or(Ok(()), |directory| {
            directory
                .close()
                .map_err(|error| Failure::because("removing the temporary directory", &error))
        })
    }

    /// Stops everything and leaves the files.
    pub(crate) async fn leave_behind(&mut self) -> PathBuf {
        let _what_failed_is_told_already = self.stop().await;
        if let Some(directory) = self.directory.take() {
            let _kept = directory.keep();
        }
        self.path.clone()
    }

    async fn stop(&mut self) -> Result<(), Failure> {
        let stopped = match self.server.take() {
            Some(server) => server.stop().await,
            None => Ok(()),
        };
        if let Some(forge) = self.forge.take() {
            forge.shutdown().await;
        }
        stopped
    }
}

fn write_files(directory: &Path, files: &[stories::File]) -> std::io::Result<()> {
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(directory))?;
        std::fs::write(path, content)?;
    }
    Ok(())
}

/// Logs into the stage, where it disturbs nobody.
fn log_to(path: &Path) {
    let filter = EnvFilter::try_from_env("CONDUCTOR_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    if let Ok(file) = std::fs::File::create(path) {
        let _set_already = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(file)
            .try_init();
    }
}
