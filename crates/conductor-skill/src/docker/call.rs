//! Starts the docker program, which is the only way to an engine: arguments as a list, a bound on time and output.
//!
//! The one home of docker processes here. Podman answers to the same words. This module does not know what is asked.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use conductor_port::target::TargetFault;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// A question to the engine takes milliseconds; one that takes this long gets no answer any more.
const PATIENCE: Duration = Duration::from_mins(2);
/// Longest answer.
const MOST_OUTPUT: u64 = 320 * 1024 * 1024;

/// The docker program, and what of our environment it may see.
#[derive(Debug, Clone)]
pub struct Docker {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// What a docker process left.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Finished {
    /// Both streams, for what nobody else understands.
    pub(super) fn all(&self) -> String {
        format!("{} {}", self.stderr, String::from_utf8_lossy(&self.stdout))
            .trim()
            .to_owned()
    }
}

impl Docker {
    /// Looks for `docker`, else `podman`, in the directories of `PATH`; starts nothing.
    pub fn find(environment: &[(OsString, OsString)]) -> Result<Self, TargetFault> {
        let path = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone())
            .unwrap_or_default();
        let found = ["docker", "podman"]
            .iter()
            .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
            .find(|candidate| candidate.is_file());
        match found {
            Some(program) => Ok(Self::at(&program, environment)),
            None => Err(TargetFault::Unavailable {
                what: "Docker CLI not found".to_owned(),
                hint: "install Docker or ensure `docker` is in your PATH".to_owned(),
            }),
        }
    }

    /// Uses the program at a path.
    pub fn at(program: &Path, environment: &[(OsString, OsString)]) -> Self {
        let is_wanted = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("DOCKER_")
                || name.starts_with("CONTAINER")
                || matches!(&*name, "PATH" | "HOME" | "XDG_RUNTIME_DIR")
        };
        Self {
            program: program.to_owned(),
            environment: environment
                .iter()
                .filter(|(name, _)| is_wanted(name))
                .cloned()
                .collect(),
        }
    }

    /// Runs docker to its end.
    pub(super) async fn call<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: Option<Vec<u8>>,
    ) -> Result<Finished, TargetFault> {
        #[allow(clippy::disallowed_methods, reason = "the home of docker processes")]
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(if input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let failed = |what: String| TargetFault::Failed {
            what,
            hint: "check the engine with `docker info`".to_owned(),
        };
        let mut child = command
            .spawn()
            .map_err(|error| failed(format!("starting {}: {error}", self.program.display())))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let work = async {
            let feed = async {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // A reader that ends early is reported by its own exit status.
                    let _told_by_status = stdin.write_all(&input).await;
                }
            };
            let ((), stdout, stderr) = tokio::join!(feed, read(stdout), read(stderr));
            Ok::<_, std::io::Error>((child.wait().await?, stdout?, stderr?))
        };
        match tokio::time::timeout(PATIENCE, work).await {
            Err(_) => Err(failed(format!(
                "docker gave no answer within {} s",
                PATIENCE.as_secs()
            ))),
            Ok(Err(error)) => Err(failed(format!("speaking with docker: {error}"))),
            Ok(Ok((status, stdout, stderr))) => Ok(Finished {
                status: status.code().unwrap_or(-1),
                stdout,
                stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
            }),
        }
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(MOST_OUTPUT).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 == MOST_OUTPUT {
            return Err(std::io::Error::other("it said too much"));
        }
    }
    Ok(bytes)
}
