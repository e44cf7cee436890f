//! A PostgreSQL server for tests, and an empty database on it for each.
//!
//! The first test that needs the server starts it, on a socket in a directory that nobody else may enter; the others,
//! also of other processes, share it. A watch ends it a while after the last of them. Nothing on it outlives it. One
//! template has the tables, and every test works in a copy. It does not know what is tested.
#![allow(
    clippy::disallowed_methods,
    clippy::zombie_processes,
    reason = "the home of the server's processes, which outlive the test that starts them"
)]

#[path = "own_server.rs"]
pub(crate) mod own_server;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use conductor_domain::digest::Digest;
use conductor_store::{Database, Settings};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

/// Ends the server when no test has used it for a while: tests hold the lock shared.
const WATCH: &str = r#"while sleep 90; do
    if flock --exclusive --nonblock "$1/lock" "$2/pg_ctl" stop --silent --mode=immediate -D "$1/data"; then exit; fi
done"#;

/// An empty database, with tables.
pub(crate) async fn database() -> String {
    copy_of(&template().await).await
}

/// An empty database, without tables.
pub(crate) async fn bare_database() -> String {
    copy_of("template1").await
}

/// A connection past the store.
pub(crate) async fn raw(address: &str) -> PgConnection {
    let options: PgConnectOptions = address.parse().unwrap();
    options.connect().await.unwrap()
}

pub(crate) async fn execute(conn: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(conn)
        .await
        .unwrap();
}

/// The first column of every row, as text.
pub(crate) async fn column(conn: &mut PgConnection, sql: &str) -> Vec<String> {
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .fetch_all(conn)
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The address of a database on the server of the tests.
pub(crate) fn address(database: &str) -> String {
    let socket = server().home.join("socket");
    format!(
        "postgres://postgres@localhost/{database}?host={}",
        socket.display()
    )
}

/// The name of the database at an address.
pub(crate) async fn name_of(address: &str) -> String {
    column(&mut raw(address).await, "SELECT CAST(current_database() AS TEXT)")
        .await
        .remove(0)
}

/// A copy of a database, which nobody may use at this moment; sessions that are on their way out are ended.
pub(crate) async fn copy_of(template: &str) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let mut conn = raw(&address("postgres")).await;
    drop_leftovers(&mut conn).await;
    end_sessions(&mut conn, template).await;
    let n = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{}_{n}", std::process::id());
    execute(&mut conn, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    execute(&mut conn, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
    conn.close().await.unwrap();
    address(&name)
}

async fn end_sessions(conn: &mut PgConnection, database: &str) {
    let end = format!(
        "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity WHERE datname = '{database}'"
    );
    column(conn, &end).await;
}

/// Drops some of the databases whose process is gone; more than each test makes, so that they become fewer.
async fn drop_leftovers(conn: &mut PgConnection) {
    let names = column(
        conn,
        "SELECT CAST(datname AS TEXT) FROM pg_database WHERE datname LIKE 'test\\_%'",
    )
    .await;
    let is_left = |name: &&String| {
        let pid = name.split('_').nth(1).unwrap_or_default();
        !Path::new("/proc").join(pid).exists()
    };
    for name in names.iter().filter(is_left).take(3) {
        // Another test may be doing the same.
        let _ = sqlx::raw_sql(AssertSqlSafe(format!(
            "DROP DATABASE IF EXISTS {name} WITH (FORCE)"
        )))
        .execute(&mut *conn)
        .await;
    }
}

/// The template, made where there is none yet. It bears the text of the migrations in its name.
async fn template() -> String {
    let text = concat!(
        include_str!("../../migrations/postgres/0001_ledger.sql"),
        include_str!("../../migrations/postgres/0002_ends.sql"),
        include_str!("../../migrations/postgres/0003_duties.sql"),
        include_str!("../../migrations/postgres/0004_keys.sql"),
        include_str!("../../migrations/postgres/0005_search.sql"),
        include_str!("../../migrations/postgres/0006_answers.sql"),
        include_str!("../../migrations/postgres/0007_figures.sql")
    );
    let digest = Digest::of(text.as_bytes());
    let name = format!(
        "template_{}",
        &digest.as_str().trim_start_matches("sha256:")[..16]
    );
    let mut conn = raw(&address("postgres")).await;
    execute(&mut conn, "SELECT pg_advisory_lock(1)").await;
    let there = format!("SELECT CAST(datname AS TEXT) FROM pg_database WHERE datname = '{name}'");
    if column(&mut conn, &there).await.is_empty() {
        execute(&mut conn, "DROP DATABASE IF EXISTS in_the_making WITH (FORCE)").await;
        execute(&mut conn, "CREATE DATABASE in_the_making").await;
        let store = Database::connect(&address("in_the_making"), &Settings::default()).await;
        store.unwrap().close().await;
        // What is closed here may not be over there yet, and a database in use cannot be renamed.
        end_sessions(&mut conn, "in_the_making").await;
        execute(
            &mut conn,
            &format!("ALTER DATABASE in_the_making RENAME TO {name}"),
        )
        .await;
    }
    conn.close().await.unwrap();
    name
}

struct Server {
    home: PathBuf,
    /// Held shared as long as this process lives.
    _in_use: File,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let host = Host::here();
        let in_use = host.lock();
        loop {
            in_use.lock_shared().unwrap();
            if host.answers() {
                return Server {
                    home: host.home,
                    _in_use: in_use,
                };
            }
            in_use.unlock().unwrap();
            in_use.lock().unwrap();
            if !host.answers() {
                host.start();
            }
            in_use.unlock().unwrap();
        }
    })
}

/// Where the server runs, and as whom: it refuses root.
struct Host {
    programs: PathBuf,
    home: PathBuf,
    user: (u32, u32),
}

impl Host {
    fn here() -> Self {
        let user = user();
        // Not in the checkout, where another user may not be able to walk in, and short, because it names a socket.
        let home = PathBuf::from(format!("/var/tmp/conductor-test-postgres-{}", user.0));
        Self::at(home, user)
    }

    /// A server's home, made where there is none.
    fn at(home: PathBuf, user: (u32, u32)) -> Self {
        let me = fs::metadata("/proc/self").unwrap();
        let _ = fs::create_dir(&home);
        if me.uid() == 0 && fs::metadata(&home).unwrap().uid() == 0 {
            std::os::unix::fs::chown(&home, Some(user.0), Some(user.1)).unwrap();
        }
        let owner = fs::symlink_metadata(&home).unwrap();
        assert!(
            owner.is_dir() && owner.uid() == user.0,
            "{} is somebody else's",
            home.display()
        );
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        Self {
            programs: programs(),
            home,
            user,
        }
    }

    fn lock(&self) -> File {
        let path = self.home.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        lock
    }

    fn answers(&self) -> bool {
        UnixStream::connect(self.home.join("socket/.s.PGSQL.5432")).is_ok()
    }

    fn start(&self) {
        self.make();
        // Nothing in here outlives a crash of the machine, so nothing waits for the disk.
        self.begin("-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=300");
        self.watch(WATCH);
    }

    /// Makes an empty server, in place of what was there.
    fn make(&self) {
        let (data, socket) = (self.home.join("data"), self.home.join("socket"));
        for dir in [&data, &socket] {
            if dir.exists() {
                fs::remove_dir_all(dir).unwrap();
            }
        }
        fs::create_dir(&socket).unwrap();
        std::os::unix::fs::chown(&socket, Some(self.user.0), Some(self.user.1)).unwrap();
        let mut initdb = self.command("initdb");
        initdb
            .args(["--username=postgres", "--auth=trust", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data);
        run(initdb);
    }

    /// Lets the server run; returns when it answers.
    fn begin(&self, options: &str) {
        let socket = self.home.join("socket");
        let options = format!("{options} -c unix_socket_directories='{}'", socket.display());
        let mut start = self.command("pg_ctl");
        start
            .args(["start", "--wait", "--silent", "-D"])
            .arg(self.home.join("data"))
            .arg("-l")
            .arg(self.home.join("log"))
            .arg("-o")
            .arg(options);
        run(start);
    }

    /// Lets somebody look after the server who outlives this process.
    fn watch(&self, script: &str) {
        let mut watch = self.lent(Command::new("sh"));
        watch
            .args(["-c", script, "watch"])
            .arg(&self.home)
            .arg(&self.programs);
        watch.process_group(0).spawn().unwrap();
    }

    fn command(&self, program: &str) -> Command {
        self.lent(Command::new(self.programs.join(program)))
    }

    fn lent(&self, mut command: Command) -> Command {
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if fs::metadata("/proc/self").unwrap().uid() != self.user.0 {
            command.uid(self.user.0).gid(self.user.1);
        }
        command
    }
}

fn run(mut command: Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// As whom servers run.
fn user() -> (u32, u32) {
    let me = fs::metadata("/proc/self").unwrap();
    if me.uid() == 0 {
        other_user()
    } else {
        (me.uid(), me.gid())
    }
}

/// User and group of `postgres`, or of `nobody`.
fn other_user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| {
            let line = users.lines().find(|line| line.split(':').next() == Some(*name))?;
            let mut ids = line.split(':').skip(2);
            Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
        })
        .expect("a user that is not root; `cargo xtask setup postgres` brings one")
}

/// The directory of `initdb` and `pg_ctl`; Debian keeps it out of `PATH`.
fn programs() -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut versions: Vec<PathBuf> = debian.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .rev()
        .chain(std::env::split_paths(&path))
        .find(|dir| dir.join("initdb").is_file() && dir.join("pg_ctl").is_file())
        .expect("PostgreSQL; `cargo xtask setup postgres` installs it")
}
