//! A PostgreSQL server for one test alone, which may be stopped, restarted, filled and refused.
//!
//! It goes with the test. It does not know what is tested.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Host, user};

/// Ends and removes the server when its test is dead, which then had no time to do it.
const WATCH: &str = r#"while sleep 20 && [ -e "$1/lock" ]; do
    flock --exclusive --nonblock "$1/lock" sh -c '"$2/pg_ctl" stop --silent --mode=immediate -D "$1/data"; rm -rf "$1"' watch "$1" "$2"
done"#;

/// A server of one's own.
pub(crate) struct OwnServer {
    host: Host,
    options: String,
    port: u16,
    _in_use: File,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Sessions are ended, then all is written down.
    Fast,
    /// As if the power was cut.
    Immediate,
}

impl OwnServer {
    /// Starts a server on a socket of its own, with these settings (`-c name=value`).
    pub(crate) fn start(settings: &str) -> Self {
        Self::on(home(), 5432, &format!("-c listen_addresses='' {settings}"))
    }

    /// Starts a server that also listens on loopback, with TLS by this certificate and key, which are copied.
    pub(crate) fn with_tls(certificate: &str, key: &str) -> Self {
        let home = home();
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let host = Host::at(home.clone(), user());
        for (name, text) in [("server.pem", certificate), ("server.key", key)] {
            let path = host.home.join(name);
            std::fs::write(&path, text).unwrap();
            own(&path, host.user);
        }
        let settings = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c fsync=off -c ssl=on -c ssl_cert_file={0}/server.pem \
             -c ssl_key_file={0}/server.key",
            home.display()
        );
        Self::on(home, port, &settings)
    }

    fn on(home: PathBuf, port: u16, options: &str) -> Self {
        let host = Host::at(home, user());
        let in_use = host.lock();
        in_use.lock_shared().unwrap();
        host.make();
        host.begin(options);
        host.watch(WATCH);
        Self {
            host,
            options: options.to_owned(),
            port,
            _in_use: in_use,
        }
    }

    /// The address of a database on it, over its socket.
    pub(crate) fn address(&self, database: &str) -> String {
        format!(
            "postgres://postgres@localhost:{}/{database}?host={}",
            self.port,
            self.socket_dir().display()
        )
    }

    /// The directory of its socket.
    pub(crate) fn socket_dir(&self) -> PathBuf {
        self.host.home.join("socket")
    }

    /// Its port on loopback, and the name of its socket.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Gives a directory to the server's user.
    pub(crate) fn lend(&self, dir: &Path) {
        own(dir, self.host.user);
    }

    /// Stops it.
    pub(crate) fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "--mode=fast",
            Stop::Immediate => "--mode=immediate",
        };
        let mut stop = self.host.command("pg_ctl");
        stop.args(["stop", "--wait", "--silent", mode, "-D"])
            .arg(self.host.home.join("data"));
        super::run(stop);
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        self.host.begin(&self.options);
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let mut stop = self.host.command("pg_ctl");
        stop.args(["stop", "--wait", "--silent", "--mode=immediate", "-D"])
            .arg(self.host.home.join("data"));
        // It may be stopped already.
        let _ = stop.status();
        let _ = std::fs::remove_dir_all(&self.host.home);
    }
}

fn home() -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let n = MADE.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(format!(
        "/var/tmp/conductor-own-postgres-{}-{n}",
        std::process::id()
    ))
}

fn own(path: &Path, (user, group): (u32, u32)) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
}
