//! What a command works with: where the data is, where words go, and a server or a database to ask.
//!
//! Runs one command and turns its end into an exit code. This module does not know any command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_gateway::egress::Outside;

use crate::cli::{self, Cli, Threads};
use crate::client::Client;
use crate::data_dir::DataDir;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::out::{Data, Out, Talk};
use crate::server_file::{Found, ServerFile};
use crate::source::Source;

/// What a command works with.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where words go.
    pub(crate) out: Out,
    /// Where the data is.
    pub(crate) data_dir: DataDir,
    /// The data directory as this command line names it; nothing where the environment or the default counts.
    named: Option<PathBuf>,
    /// The world beyond the egress proxy.
    pub(crate) outside: Arc<dyn Outside>,
}

/// Runs the command and says what went wrong.
pub(crate) fn run(cli: Cli, outside: Arc<dyn Outside>) -> Exit {
    let data = if cli.global.json { Data::Json } else { Data::Text };
    let talk = if cli.global.quiet {
        Talk::ErrorsOnly
    } else {
        Talk::Usual
    };
    let out = Out::new(data, talk);
    let mut runtime = match cli.command.threads() {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::Several => tokio::runtime::Builder::new_multi_thread(),
    };
    let ended = runtime
        .enable_all()
        .build()
        .map_err(|error| Failure::because("starting the program", &error))
        .and_then(|runtime| {
            let session = Session::new(out, &cli, outside)?;
            let ended = runtime.block_on(cli::dispatch(&session, cli.command));
            // A question that nobody answered must not keep the program from ending.
            runtime.shutdown_background();
            ended
        });
    ended.unwrap_or_else(|failure| {
        Out::failure(&failure);
        failure.exit
    })
}

impl Session {
    fn new(out: Out, cli: &Cli, outside: Arc<dyn Outside>) -> Result<Self, Failure> {
        let path = cli
            .global
            .data_dir
            .clone()
            .or_else(environment::default_data_dir)
            .ok_or_else(|| {
                Failure::coded(
                    "CDR0409",
                    "there is no home directory to keep data in",
                    "name a directory with --data-dir or CONDUCTOR_DATA_DIR",
                )
                .exiting(Exit::Usage)
            })?;
        let path = std::path::absolute(&path).map_err(|error| {
            Failure::because(format!("finding the data directory {}", path.display()), &error)
        })?;
        Ok(Self {
            out,
            data_dir: DataDir::new(path),
            named: cli.global.data_dir.clone(),
            outside,
        })
    }

    /// A command that somebody is shown, as it must be typed to mean the same data as this one.
    pub(crate) fn typed(&self, command: &str) -> String {
        typed(self.named.as_deref(), command)
    }

    /// Reaches the server; without one, nothing can be changed.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let no_server = |what: String| {
            Failure::coded(
                "CDR0401",
                what,
                "start `conductor serve`, or name its data directory with --data-dir",
            )
            .exiting(Exit::NoServer)
        };
        match ServerFile::find(&self.data_dir.server_file())? {
            Found::Server(file) => {
                let client = Client::new(&file)?;
                let health = client.health().await?;
                if (health.pid, health.started_at) != (file.pid, file.started_at) {
                    let path = self.data_dir.path().display();
                    return Err(no_server(format!(
                        "what answers at {} is not the server of {path}",
                        file.url
                    )));
                }
                Ok(client)
            }
            Found::Gone { pid } => Err(no_server(format!(
                "no server runs on {}; the last one (process {pid}) ended without saying so",
                self.data_dir.path().display()
            ))),
            Found::Nothing => Err(no_server(format!(
                "no server runs on {}",
                self.data_dir.path().display()
            ))),
        }
    }

    /// Reaches the server, or without one that answers opens the database for reading.
    pub(crate) async fn source(&self) -> Result<Source, Failure> {
        match self.client().await {
            Ok(client) => Ok(Source::Server(client)),
            Err(failure) if matches!(failure.exit, Exit::NoServer | Exit::NoAnswer) => {
                Source::open_database(&self.data_dir).await
            }
            Err(failure) => Err(failure),
        }
    }
}

fn typed(named: Option<&Path>, command: &str) -> String {
    match (named, command.strip_prefix("conductor ")) {
        (Some(dir), Some(rest)) => format!("conductor --data-dir {} {rest}", word(&dir.to_string_lossy())),
        // An address of a page is no command.
        (None, _) | (_, None) => command.to_owned(),
    }
}

/// A word as a shell reads it back.
fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_data_directory_where_the_last_one_did() {
        let step = "conductor run approve r-1";
        assert_eq!(typed(None, step), step);
        assert_eq!(
            typed(Some(Path::new("/srv/c")), step),
            "conductor --data-dir /srv/c run approve r-1"
        );
        assert_eq!(
            typed(Some(Path::new("it's here")), step),
            r"conductor --data-dir 'it'\''s here' run approve r-1"
        );
        let address = "http://127.0.0.1:9/acme/thing/pull/2";
        assert_eq!(typed(Some(Path::new("/srv/c")), address), address);
    }
}
