//! Opens a database on a PostgreSQL server: finds out whether it can be used at all, and only then begins.
//!
//! Other processes may be doing the same at this moment. With `open.rs` the one home of connection pools. It does not
//! know any statement on tables beyond those of the migrations.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};

use super::conn::{Conn, Db};
use super::error::{OpenError, Place};
use super::migrate::{self, MIGRATIONS};
use super::version::{self, Schema};
use super::{Database, Settings, sql};

/// The oldest server that the tests run on, as it numbers itself.
const OLDEST: i64 = 150_000;

/// Whether sessions may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Read,
}

impl Database {
    /// Opens the database at `address` (`postgres://…`); makes its tables where there are none, and migrates older ones.
    /// Several processes may call it at once.
    pub async fn connect(address: &str, settings: &Settings) -> Result<Self, OpenError> {
        let (options, place) = parse(address)?;
        reach(&options, &place, settings, Access::Write).await?;
        let is_open = Arc::new(AtomicBool::new(false));
        let db = Db::Postgres {
            writers: Some(writers(&options, settings, &place, &is_open)),
            readers: pool(&options, settings, Access::Read),
        };
        check_server(&db, &place).await?;
        migrate::run(&db, &place, MIGRATIONS, settings.rules).await?;
        is_open.store(true, Ordering::Release);
        check_rights(&db, &place).await?;
        Ok(Self::on(db, place, settings))
    }

    /// Opens the database at `address` for reading only; every write is answered with a fault.
    pub async fn connect_read_only(address: &str, settings: &Settings) -> Result<Self, OpenError> {
        let (options, place) = parse(address)?;
        reach(&options, &place, settings, Access::Read).await?;
        let db = Db::Postgres {
            writers: None,
            readers: pool(&options, settings, Access::Read),
        };
        check_server(&db, &place).await?;
        migrate::all_done(&db, &place, MIGRATIONS).await?;
        Ok(Self::on(db, place, settings))
    }
}

/// Reads an address. To another machine nothing is said before it has shown who it is: where the address says nothing
/// about it, the server's certificate is checked with its name, and less than a checked certificate is refused.
pub(super) fn parse(address: &str) -> Result<(PgConnectOptions, Place), OpenError> {
    let bad = |why: &str| OpenError::BadAddress { why: why.to_owned() };
    if !(address.starts_with("postgres://") || address.starts_with("postgresql://")) {
        return Err(bad("it does not begin with `postgres://`"));
    }
    let options: PgConnectOptions = address.parse().map_err(|_| bad("it cannot be read"))?;
    let database = options
        .get_database()
        .unwrap_or(options.get_username())
        .to_owned();
    let place = match options.get_socket() {
        Some(socket) => format!("{database} at {}", socket.display()),
        None => format!("{database} at {}:{}", options.get_host(), options.get_port()),
    };
    let is_here = options.get_socket().is_some() || is_loopback(options.get_host());
    let options = match options.get_ssl_mode() {
        PgSslMode::VerifyCa | PgSslMode::VerifyFull => options,
        _ if is_here => options,
        PgSslMode::Prefer => options.ssl_mode(PgSslMode::VerifyFull),
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Require => {
            return Err(bad(
                "its `sslmode` lets anybody answer in place of the server, which is on another machine",
            ));
        }
    };
    Ok((options, Place::Server(place)))
}

fn is_loopback(host: &str) -> bool {
    // A host that begins with a slash is the directory of a socket.
    host == "localhost"
        || host.starts_with('/')
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Connects once, outside of the pools: they would try again and again, and in the end know only that time is up.
/// Who will write learns here whether another version is at work.
pub(super) async fn reach(
    options: &PgConnectOptions,
    place: &Place,
    settings: &Settings,
    access: Access,
) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("connect to", place, error);
    let mut conn = tokio::time::timeout(settings.busy_timeout, options.connect())
        .await
        .map_err(|_| failed(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))?
        .map_err(failed)?;
    if access == Access::Write {
        version::settle_in(&mut conn, place, settings.rules, Schema::MayDiffer).await?;
    }
    sqlx::Connection::close(conn).await.map_err(failed)
}

pub(super) async fn check_server(db: &Db, place: &Place) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("look into", place, error);
    let mut conn = db.reader().await.map_err(failed)?;
    let Some(row) = conn.first(sql::SERVER, &[]).await.map_err(failed)? else {
        return Ok(());
    };
    let (version, encoding) = (row.int(0).map_err(failed)?, row.text(1).map_err(failed)?);
    unfit(version, &encoding).map_or(Ok(()), |why| {
        Err(OpenError::Unfit {
            place: place.clone(),
            why,
        })
    })
}

fn unfit(version: i64, encoding: &str) -> Option<String> {
    if version < OLDEST {
        let (found, needed) = (version / 10_000, OLDEST / 10_000);
        return Some(format!(
            "its server is PostgreSQL {found}, at least {needed} is needed"
        ));
    }
    (encoding != "UTF8").then(|| format!("its encoding is {encoding}, not UTF8"))
}

async fn check_rights(db: &Db, place: &Place) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("write to", place, error);
    let Some(conn) = db.writer().await else {
        return Ok(());
    };
    let mut conn = conn.map_err(failed)?;
    conn.begin().await.map_err(failed)?;
    let tried = conn.execute(sql::TRY_RIGHTS, &[]).await;
    undo(&mut conn).await.map_err(failed)?;
    tried.map(drop).map_err(failed)
}

async fn undo(conn: &mut Conn) -> Result<(), sqlx::Error> {
    conn.execute(sql::ROLLBACK, &[]).await.map(drop)
}

/// Connects when first used, and makes sure before each use that the server has not gone away meanwhile.
#[allow(clippy::disallowed_methods, reason = "the one home of pools")]
pub(super) fn pool(options: &PgConnectOptions, settings: &Settings, access: Access) -> PgPool {
    pool_options(settings, access).connect_lazy_with(session_options(options, settings, access))
}

/// The same for sessions that write: none of them works beside another version, nor on tables that are not ours any more.
#[allow(clippy::disallowed_methods, reason = "the one home of pools")]
fn writers(
    options: &PgConnectOptions,
    settings: &Settings,
    place: &Place,
    is_open: &Arc<AtomicBool>,
) -> PgPool {
    let (place, rules, is_open) = (place.clone(), settings.rules, Arc::clone(is_open));
    pool_options(settings, Access::Write)
        .after_connect(move |session, _| {
            let (place, is_open) = (place.clone(), Arc::clone(&is_open));
            Box::pin(async move {
                let schema = if is_open.load(Ordering::Acquire) {
                    Schema::MustBeOurs
                } else {
                    Schema::MayDiffer
                };
                version::settle_in(session, &place, rules, schema)
                    .await
                    .map_err(|refused| sqlx::Error::Protocol(refused.to_string()))
            })
        })
        .connect_lazy_with(session_options(options, settings, Access::Write))
}

fn session_options(options: &PgConnectOptions, settings: &Settings, access: Access) -> PgConnectOptions {
    let millis = |time: Duration| time.as_millis().to_string();
    options.clone().application_name("conductor").options([
        ("lock_timeout", millis(settings.busy_timeout)),
        ("statement_timeout", millis(settings.statement_timeout)),
        (
            "idle_in_transaction_session_timeout",
            millis(settings.statement_timeout),
        ),
        (
            "default_transaction_read_only",
            match access {
                Access::Write => "off".to_owned(),
                Access::Read => "on".to_owned(),
            },
        ),
    ])
}

fn pool_options(settings: &Settings, access: Access) -> PgPoolOptions {
    let connections = match access {
        Access::Write => settings.writers,
        Access::Read => settings.readers,
    };
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(settings.busy_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_must_show_who_it_is() {
        let mode = |address: &str| parse(address).map(|(options, _)| options.get_ssl_mode());
        for address in [
            "postgres://me@db.example/conductor",
            "postgres://me@db.example/conductor?sslmode=verify-full",
            "postgres://me@192.0.2.1/conductor",
        ] {
            assert!(
                matches!(mode(address), Ok(PgSslMode::VerifyFull)),
                "{address}: {:?}",
                mode(address)
            );
        }
        for weak in ["disable", "allow", "require"] {
            let address = format!("postgres://me:hunter2@db.example/conductor?sslmode={weak}");
            let error = mode(&address).expect_err(weak);
            assert_eq!(error.code(), "CDR0613");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        for here in [
            "postgres://me@localhost/conductor",
            "postgres://me@127.0.0.1/conductor?sslmode=disable",
            "postgres://me@[::1]/conductor",
            "postgres://me@localhost/conductor?host=/run/postgresql",
        ] {
            assert!(
                matches!(mode(here), Ok(PgSslMode::Prefer | PgSslMode::Disable)),
                "{here}: {:?}",
                mode(here)
            );
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_without_repeating_it() {
        for address in ["", "mysql://me:hunter2@db/x", "postgres://me:hunter2@db:port/x"] {
            let error = parse(address).expect_err(address);
            assert_eq!(error.code(), "CDR0613");
            assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn a_place_does_not_name_user_or_password() {
        let (_, place) = parse("postgres://me:hunter2@localhost:5433/conductor").unwrap();
        assert_eq!(place.to_string(), "conductor at localhost:5433");
    }

    #[test]
    fn an_old_server_or_another_encoding_is_refused() {
        for (version, encoding, expected) in [
            (150_000, "UTF8", None),
            (180_001, "UTF8", None),
            (
                140_012,
                "UTF8",
                Some("its server is PostgreSQL 14, at least 15 is needed"),
            ),
            (150_003, "SQL_ASCII", Some("its encoding is SQL_ASCII, not UTF8")),
        ] {
            assert_eq!(unfit(version, encoding).as_deref(), expected);
        }
    }
}
