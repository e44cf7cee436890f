//! What opens the door to people, on the database.
//!
//! It does not know what a key opens.

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::id::OperatorName;
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::key::{Holder, Key, KeyKind, Keys};

use super::conn::Arg::{Int, Text};
use super::conn::{Conn, Row};
use super::writer::{Failed, Write};
use super::{Database, sql};

/// Whose a key is, since and until when, as it is kept.
struct Held {
    holder: Holder,
    since: Timestamp,
    ends_at: Timestamp,
}

fn held(row: &Row) -> Result<Held, sqlx::Error> {
    let name = OperatorName::parse(row.text(1)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Held {
        holder: match row.int(0)? {
            0 => Holder::Operator(name),
            _ => Holder::Owner(name),
        },
        ends_at: Timestamp(row.int(2)?),
        since: Timestamp(row.int(3)?),
    })
}

fn only_text(row: &Row) -> Result<String, sqlx::Error> {
    row.text(0)
}

fn key(kind: KeyKind, hash: &Digest, held: Held) -> Key {
    Key {
        kind,
        hash: hash.clone(),
        holder: held.holder,
        since: held.since,
        ends_at: held.ends_at,
    }
}

struct Keep {
    key: Key,
    now: Timestamp,
}

#[async_trait]
impl Write for Keep {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("keep a {} of {}", self.key.kind.as_str(), self.key.holder.name())
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        conn.execute(sql::FORGET_KEYS, &[Int(self.now.0)]).await?;
        let is_owner = match self.key.holder {
            Holder::Owner(_) => 1,
            Holder::Operator(_) => 0,
        };
        let args = [
            Text(self.key.hash.as_str()),
            Text(self.key.kind.as_str()),
            Int(is_owner),
            Text(self.key.holder.name().as_str()),
            Int(self.key.ends_at.0),
            Int(self.key.since.0),
        ];
        conn.execute(sql::KEEP_KEY, &args).await?;
        Ok(())
    }
}

struct Lengthen {
    kind: KeyKind,
    hash: Digest,
    ends_at: Timestamp,
}

#[async_trait]
impl Write for Lengthen {
    type Done = bool;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("lengthen a {}", self.kind.as_str())
    }

    async fn apply(&self, conn: &mut Conn) -> Result<bool, Failed<Fault>> {
        let args = [
            Text(self.hash.as_str()),
            Text(self.kind.as_str()),
            Int(self.ends_at.0),
        ];
        Ok(conn.execute(sql::LENGTHEN_KEY, &args).await? > 0)
    }
}

struct Take {
    kind: KeyKind,
    hash: Digest,
    now: Timestamp,
}

#[async_trait]
impl Write for Take {
    type Done = Option<Key>;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("take a {} away", self.kind.as_str())
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Option<Key>, Failed<Fault>> {
        let args = [Text(self.hash.as_str()), Text(self.kind.as_str())];
        let Some(row) = conn.first(sql::TAKE_KEY, &args).await? else {
            return Ok(None);
        };
        let held = held(&row)?;
        Ok((self.now < held.ends_at).then(|| key(self.kind, &self.hash, held)))
    }
}

struct TakeAll(Holder);

#[async_trait]
impl Write for TakeAll {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("take all keys of {} away", self.0.name())
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        match &self.0 {
            Holder::Owner(_) => conn.execute(sql::TAKE_OWNERS_KEYS, &[]).await?,
            Holder::Operator(name) => conn.execute(sql::TAKE_ALL_KEYS, &[Text(name.as_str())]).await?,
        };
        Ok(())
    }
}

struct SetPassword {
    operator: OperatorName,
    hash: Option<String>,
}

#[async_trait]
impl Write for SetPassword {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("keep the password of {}", self.operator)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        let operator = Text(self.operator.as_str());
        match &self.hash {
            Some(hash) => conn.execute(sql::SET_PASSWORD, &[operator, Text(hash)]).await?,
            None => conn.execute(sql::FORGET_PASSWORD, &[operator]).await?,
        };
        Ok(())
    }
}

#[async_trait]
impl Keys for Database {
    async fn keep(&self, key: &Key, now: Timestamp) -> Result<(), Fault> {
        let key = key.clone();
        self.writer.write(Keep { key, now }).await
    }

    async fn lengthen(&self, kind: KeyKind, hash: &Digest, ends_at: Timestamp) -> Result<bool, Fault> {
        let hash = hash.clone();
        self.writer.write(Lengthen { kind, hash, ends_at }).await
    }

    async fn find(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let attempted = format!("find a {}", kind.as_str());
        let args = [Text(hash.as_str()), Text(kind.as_str()), Int(now.0)];
        let mut found = self.look(&attempted, sql::FIND_KEY, &args, held).await?;
        Ok(found.pop().map(|held| key(kind, hash, held)))
    }

    async fn take(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault> {
        let hash = hash.clone();
        self.writer.write(Take { kind, hash, now }).await
    }

    async fn take_all(&self, holder: &Holder) -> Result<(), Fault> {
        self.writer.write(TakeAll(holder.clone())).await
    }

    async fn set_password(&self, operator: &OperatorName, hash: Option<&str>) -> Result<(), Fault> {
        self.writer
            .write(SetPassword {
                operator: operator.clone(),
                hash: hash.map(str::to_owned),
            })
            .await
    }

    async fn password(&self, operator: &OperatorName) -> Result<Option<String>, Fault> {
        let attempted = format!("read the password of {operator}");
        let args = [Text(operator.as_str())];
        let mut found = self.look(&attempted, sql::PASSWORD, &args, only_text).await?;
        Ok(found.pop())
    }
}
