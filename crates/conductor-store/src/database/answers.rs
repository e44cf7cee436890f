//! Answers to writes that named themselves, on the database.
//!
//! It does not know what is written.

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_port::Fault;
use conductor_port::answer::{Answers, Begun, KeptAnswer, NamedWrite};

use super::conn::Arg::{Bytes, Int, Text};
use super::conn::{Conn, Row};
use super::writer::{Failed, Write};
use super::{Database, sql};

/// The status of a write that has no answer yet.
const NONE_YET: i64 = 0;

struct Begin(NamedWrite);

impl Begin {
    /// Goes on with a write that was begun and lost; of many who try, one does.
    async fn again(&self, conn: &mut Conn) -> Result<Begun, Failed<Fault>> {
        let Self(write) = self;
        let args = [
            Text(write.name.as_str()),
            Int(write.now.0),
            Int(write.lost_before.0),
            Int(write.ends_at.0),
        ];
        Ok(match conn.execute(sql::BEGIN_ANSWER_AGAIN, &args).await? {
            0 => Begun::UnderWay,
            _ => Begun::New,
        })
    }
}

#[async_trait]
impl Write for Begin {
    type Done = Begun;
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("begin the write {}", self.0.name)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<Begun, Failed<Fault>> {
        let Self(write) = self;
        conn.execute(sql::FORGET_ANSWERS, &[Int(write.now.0)]).await?;
        let (name, request) = (Text(write.name.as_str()), Text(write.request.as_str()));
        let args = [name, request, Int(write.now.0), Int(write.ends_at.0)];
        if conn.execute(sql::BEGIN_ANSWER, &args).await? > 0 {
            let last = i64::from(write.most.saturating_sub(1));
            conn.execute(sql::MAKE_ROOM_FOR_ANSWERS, &[Int(last)]).await?;
            return Ok(Begun::New);
        }
        // Whoever had it may have forgotten it just now; they come back.
        let Some(row) = conn.first(sql::ANSWER, &[name]).await? else {
            return Ok(Begun::UnderWay);
        };
        if row.text(0)? != write.request.as_str() {
            return Ok(Begun::Taken);
        }
        match answer(&row)? {
            Some(answer) => Ok(Begun::Answered(answer)),
            None => self.again(conn).await,
        }
    }
}

fn answer(row: &Row) -> Result<Option<KeptAnswer>, sqlx::Error> {
    let status = row.int(1)?;
    if status == NONE_YET {
        return Ok(None);
    }
    let status = u16::try_from(status).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Some(KeptAnswer {
        status,
        kind: row.text(2)?,
        body: row.bytes(3)?,
    }))
}

struct Keep {
    name: Digest,
    answer: KeptAnswer,
}

#[async_trait]
impl Write for Keep {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("keep the answer to the write {}", self.name)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        let args = [
            Text(self.name.as_str()),
            Int(i64::from(self.answer.status)),
            Text(&self.answer.kind),
            Bytes(&self.answer.body),
        ];
        conn.execute(sql::KEEP_ANSWER, &args).await?;
        Ok(())
    }
}

struct Forget(Digest);

#[async_trait]
impl Write for Forget {
    type Done = ();
    type Refused = Fault;

    fn attempted(&self) -> String {
        format!("forget the write {}", self.0)
    }

    async fn apply(&self, conn: &mut Conn) -> Result<(), Failed<Fault>> {
        conn.execute(sql::FORGET_ANSWER, &[Text(self.0.as_str())]).await?;
        Ok(())
    }
}

#[async_trait]
impl Answers for Database {
    async fn begin(&self, write: &NamedWrite) -> Result<Begun, Fault> {
        self.writer.write(Begin(write.clone())).await
    }

    async fn keep(&self, name: &Digest, answer: &KeptAnswer) -> Result<(), Fault> {
        let (name, answer) = (name.clone(), answer.clone());
        self.writer.write(Keep { name, answer }).await
    }

    async fn forget(&self, name: &Digest) -> Result<(), Fault> {
        self.writer.write(Forget(name.clone())).await
    }
}
