//! Duties that one process has for all, and marks that all processes agree on, on the database.
//!
//! It does not know what a duty is about, nor what a mark says.

use async_trait::async_trait;
use conductor_port::Fault;
use conductor_port::duty::{Duties, Duty, DutyWish, Holder};
use conductor_port::herald::Marks;

use super::conn::Arg::{Int, Text};
use super::conn::Conn;
use super::writer::{Failed, Write};
use super::{Database, rows, sql};

struct Hold(DutyWish);

#[async_trait]
impl Write for Hold {
    type Done = Holder;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("take the duty `{}` for {}", self.0.duty.as_str(), self.0.worker)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Holder, Failed<Fault>> {
        let Self(wish) = self;
        let args = [
            Text(wish.duty.as_str()),
            Text(&wish.worker),
            Int(wish.now.0),
            Int(wish.until.0),
        ];
        Ok(match conn.execute(sql::HOLD_DUTY, &args).await? {
            0 => Holder::Another,
            _ => Holder::Us,
        })
    }
}

struct LayDown {
    duty: Duty,
    worker: String,
}

#[async_trait]
impl Write for LayDown {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("lay the duty `{}` of {} down", self.duty.as_str(), self.worker)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        let args = [Text(self.duty.as_str()), Text(&self.worker)];
        conn.execute(sql::LAY_DOWN_DUTY, &args).await?;
        Ok(())
    }
}

#[async_trait]
impl Duties for Database {
    async fn hold(&self, wish: &DutyWish) -> Result<Holder, Fault> {
        self.writer.write(Hold(wish.clone())).await
    }

    async fn lay_down(&self, duty: Duty, worker: &str) -> Result<(), Fault> {
        self.writer
            .write(LayDown {
                duty,
                worker: worker.to_owned(),
            })
            .await
    }
}

struct PutMark {
    name: &'static str,
    value: String,
}

#[async_trait]
impl Write for PutMark {
    type Done = String;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("agree on the mark `{}`", self.name)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<String, Failed<Fault>> {
        conn.execute(sql::PUT_MARK, &[Text(self.name), Text(&self.value)])
            .await?;
        match conn.first(sql::MARK, &[Text(self.name)]).await? {
            Some(row) => Ok(row.text(0)?),
            None => Err(Failed::Refused(Fault::transient(format!(
                "{}: it is gone again",
                self.attempted()
            )))),
        }
    }
}

struct SetMark {
    name: String,
    value: String,
}

#[async_trait]
impl Write for SetMark {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("put the mark `{}`", self.name)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        conn.execute(sql::SET_MARK, &[Text(&self.name), Text(&self.value)])
            .await?;
        Ok(())
    }
}

#[async_trait]
impl Marks for Database {
    async fn marks(&self, beginning: &str) -> Result<Vec<(String, String)>, Fault> {
        let all = self.look("list the marks", sql::MARKS, &[], rows::mark).await?;
        let mut found: Vec<(String, String)> = all
            .into_iter()
            .filter(|(name, _)| name.starts_with(beginning))
            .collect();
        found.sort();
        Ok(found)
    }

    async fn mark(&self, name: &str, value: &str) -> Result<(), Fault> {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.writer.write(SetMark { name, value }).await
    }
}

impl Database {
    /// Marks the database with a word where it has none of this name; returns the one that stands there.
    pub async fn agree_on(&self, name: &'static str, value: &str) -> Result<String, Fault> {
        let value = value.to_owned();
        self.writer.write(PutMark { name, value }).await
    }
}
