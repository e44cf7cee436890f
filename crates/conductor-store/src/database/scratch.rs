//! Makes room for somebody who works in a database on a server for a while: a schema of its own, which goes with all in it.
//!
//! Nothing else in the database is touched. It does not know who needs it.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::error::OpenError;
use super::server::parse;

/// A schema of its own in a database on a server. Stays until it is removed.
#[derive(Debug)]
pub struct Scratch {
    outside: String,
    inside: String,
    name: String,
}

impl Scratch {
    /// Makes a schema in the database at `address`. The name must be one that no other schema has.
    pub async fn make(address: &str, name: &str) -> Result<Self, OpenError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_plain) {
            let why = format!("`{name}` is not the name of a schema");
            return Err(OpenError::BadAddress { why });
        }
        run(address, &format!("CREATE SCHEMA {name}")).await?;
        let joint = if address.contains('?') { '&' } else { '?' };
        Ok(Self {
            outside: address.to_owned(),
            inside: format!("{address}{joint}options[search_path]={name}"),
            name: name.to_owned(),
        })
    }

    /// The address whose sessions see this schema only.
    pub fn address(&self) -> &str {
        &self.inside
    }

    /// The schema's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the schema and all that was kept in it.
    pub async fn remove(self) -> Result<(), OpenError> {
        run(&self.outside, &format!("DROP SCHEMA {} CASCADE", self.name)).await
    }
}

async fn run(address: &str, sql: &str) -> Result<(), OpenError> {
    let (options, place) = parse(address)?;
    let failed = |error| OpenError::of("make room in", &place, error);
    let mut conn: PgConnection = options
        .connect()
        .await
        .map_err(|error| OpenError::of("connect to", &place, error))?;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut conn)
        .await
        .map_err(failed)?;
    conn.close().await.map_err(failed)
}
