//! Keeps a throw-away PostgreSQL server running for tests, on a unix socket in a private directory.
//!
//! No TCP port and no password: who may enter the directory may connect. The address stands in
//! `target/tools/postgres/url`. PostgreSQL refuses to run as root, so root lends it to the `postgres` user, whose
//! directory lies outside the checkout because that user may not be able to walk in. It does not know any schema.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{apt, ready};
use crate::process::{self, command};
use crate::workspace;

/// Makes sure of a server that answers at the address in `target/tools/postgres/url`.
pub(super) fn ensure() -> Result<()> {
    if programs().is_none() {
        apt::install(&["postgresql", "postgresql-client"])?;
    }
    let programs = programs().context("postgresql is installed but initdb and pg_ctl are not found")?;
    let server = Server::here(programs);
    if !server.answers() {
        server.start()?;
    }
    let home = workspace::tool("postgres");
    fs::create_dir_all(&home).with_context(|| format!("could not make {}", home.display()))?;
    let url = home.join("url");
    fs::write(&url, server.url()).with_context(|| format!("could not write {}", url.display()))?;
    ready("postgres", &server.url());
    Ok(())
}

/// Finds the directory that holds `initdb` and `pg_ctl`; Debian keeps it out of `PATH`.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = debian.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let on_path = workspace::find("pg_ctl").and_then(|program| Some(program.parent()?.to_owned()));
    versions
        .into_iter()
        .rev()
        .chain(on_path)
        .find(|dir| dir.join("initdb").is_file() && dir.join("pg_ctl").is_file())
}

struct Server {
    programs: PathBuf,
    home: PathBuf,
    lent: bool,
}

impl Server {
    fn here(programs: PathBuf) -> Self {
        let lent = apt::is_root();
        let home = if lent {
            PathBuf::from("/var/tmp/conductor-postgres")
        } else {
            workspace::tool("postgres")
        };
        Self { programs, home, lent }
    }

    fn url(&self) -> String {
        format!(
            "postgres://postgres@localhost/postgres?host={}",
            self.socket().display()
        )
    }

    fn socket(&self) -> PathBuf {
        self.home.join("socket")
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn answers(&self) -> bool {
        process::succeeds(self.program("pg_ctl").arg("status").arg("-D").arg(self.data()))
    }

    fn start(&self) -> Result<()> {
        private(&self.home)?;
        private(&self.socket())?;
        if self.lent {
            process::run(command("chown").args(["-R", "postgres:postgres"]).arg(&self.home))?;
        }
        if !self.data().join("PG_VERSION").is_file() {
            process::run(
                self.program("initdb")
                    .args([
                        "--username=postgres",
                        "--auth=trust",
                        "--encoding=UTF8",
                        "--no-sync",
                        "-D",
                    ])
                    .arg(self.data()),
            )?;
        }
        // Nothing in here outlives a crash of the machine, so nothing waits for the disk.
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}' -c fsync=off -c synchronous_commit=off \
             -c full_page_writes=off -c max_connections=200",
            self.socket().display()
        );
        process::run(
            self.program("pg_ctl")
                .args(["start", "--wait", "--silent", "-D"])
                .arg(self.data())
                .arg("-l")
                .arg(self.home.join("log"))
                .arg("-o")
                .arg(options),
        )
        .with_context(|| {
            format!(
                "could not start the server; its log is {}",
                self.home.join("log").display()
            )
        })
    }

    fn program(&self, name: &str) -> std::process::Command {
        let program = self.programs.join(name);
        if self.lent {
            let mut lent = command("setpriv");
            lent.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"])
                .arg(program);
            // The checkout may be closed to that user.
            lent.current_dir("/");
            return lent;
        }
        command(program)
    }
}

/// Makes a directory that nobody but its owner (and root) may enter.
fn private(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o700)))
        .with_context(|| format!("could not make {} private", dir.display()))
}
