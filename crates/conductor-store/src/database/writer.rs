//! Makes changes in transactions, and answers after the commit.
//!
//! To a file, one after the other: one commit costs one wait for the disk; changes that arrive while another is being
//! made share the next one. Each stands in its own savepoint, so that a refused one takes nothing with it; where one
//! breaks the transaction itself, all are made again, each alone. To a server, several at a time, each alone. Because
//! these tasks and not the caller drive the transactions, a caller that goes away cannot leave one open. This module
//! does not know what a change is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_port::Fault;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::conn::{Conn, Db, Pace};
use super::fault::fault;
use super::sql;

/// How many changes may share one commit: enough to hide the disk, few enough that none waits long.
const MOST_PER_COMMIT: usize = 64;

/// How many changes may wait before callers do.
const MOST_WAITING: usize = 1024;

/// A change of the database.
#[async_trait]
pub(super) trait Write: Send + Sync + 'static {
    /// What the caller learns when it is kept.
    type Done: Send;
    /// What the caller learns when it is not.
    type Refused: From<Fault> + Send;

    /// What is attempted, for errors.
    fn attempted(&self) -> String;

    /// Makes the change within the open transaction. An error undoes all of it.
    async fn apply(&self, conn: &mut Conn) -> Result<Self::Done, Failed<Self::Refused>>;
}

/// Why a change was not made.
#[derive(Debug)]
pub(super) enum Failed<E> {
    /// The answer is no.
    Refused(E),
    /// The database did not do it.
    Database(sqlx::Error),
}

/// Only within a change, so that `?` reads well there; the writer adds what was attempted.
impl<E> From<sqlx::Error> for Failed<E> {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// The way to the tasks that write. They end when this is closed or dropped.
#[derive(Debug)]
pub(super) struct Writer {
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    jobs: mpsc::Sender<Box<dyn Job>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writer {
    /// Starts the tasks.
    pub(super) fn start(db: Arc<Db>) -> Self {
        let (jobs, waiting) = mpsc::channel(MOST_WAITING);
        let tasks = match db.pace() {
            Pace::Together => vec![tokio::spawn(work_together(db, waiting))],
            Pace::Apart(width) => {
                let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
                (0..width)
                    .map(|_| tokio::spawn(work_apart(Arc::clone(&db), Arc::clone(&waiting))))
                    .collect()
            }
        };
        Self {
            open: Mutex::new(Some(Open { jobs, tasks })),
        }
    }

    /// Makes a change; returns when it is durable or refused.
    pub(super) async fn write<W: Write>(&self, write: W) -> Result<W::Done, W::Refused> {
        let attempted = write.attempted();
        let (reply, answer) = oneshot::channel();
        let closed = || W::Refused::from(Fault::transient(format!("{attempted}: the store is closed")));
        let jobs = self
            .lock()
            .as_ref()
            .map(|open| open.jobs.clone())
            .ok_or_else(closed)?;
        jobs.send(Box::new(Waiting {
            write,
            outcome: None,
            reply,
        }))
        .await
        .map_err(|_| closed())?;
        drop(jobs);
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Takes no more changes, and waits until those that were taken are made.
    pub(super) async fn close(&self) {
        let open = self.lock().take();
        if let Some(Open { jobs, tasks }) = open {
            drop(jobs);
            for task in tasks {
                // A panic of the task has been reported where it happened, and its callers were answered.
                let _ = task.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change with its place for the outcome and its way back, whatever its types.
#[async_trait]
trait Job: Send {
    /// Makes the change; tells whether it is to be kept.
    async fn apply(&mut self, conn: &mut Conn) -> bool;

    /// Answers the caller. An answer that was found beside other changes holds only if the transaction was kept; whoever
    /// stood in a transaction that was not must have been alone in it.
    fn answer(self: Box<Self>, kept: &Result<(), NotKept>);
}

struct Waiting<W: Write> {
    write: W,
    outcome: Option<Result<W::Done, W::Refused>>,
    reply: oneshot::Sender<Result<W::Done, W::Refused>>,
}

#[async_trait]
impl<W: Write> Job for Waiting<W> {
    async fn apply(&mut self, conn: &mut Conn) -> bool {
        let outcome = self.write.apply(conn).await.map_err(|failed| match failed {
            Failed::Refused(refused) => refused,
            Failed::Database(error) => fault(&self.write.attempted(), &error).into(),
        });
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, kept: &Result<(), NotKept>) {
        let outcome = match (self.outcome, kept) {
            (Some(Err(refused)), _) => Err(refused),
            (_, Err(not_kept)) => Err(not_kept.fault(&self.write.attempted()).into()),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => Err(Fault::transient("a change was not made before its commit").into()),
        };
        // The caller may have gone away; the change stays.
        let _ = self.reply.send(outcome);
    }
}

/// Why a whole transaction was not kept.
enum NotKept {
    /// There is no writer.
    ReadOnly,
    /// It was not begun; no change was looked at.
    NotBegun(sqlx::Error),
    /// It was begun and undone.
    Undone(sqlx::Error),
}

impl NotKept {
    fn fault(&self, attempted: &str) -> Fault {
        match self {
            Self::ReadOnly => Fault::permanent(format!("{attempted}: the database is open for reading only")),
            Self::NotBegun(error) | Self::Undone(error) => fault(attempted, error),
        }
    }
}

async fn work_apart(db: Arc<Db>, waiting: Arc<tokio::sync::Mutex<mpsc::Receiver<Box<dyn Job>>>>) {
    loop {
        let next = waiting.lock().await.recv().await;
        let Some(mut job) = next else { return };
        let kept = match db.writer().await {
            Some(Ok(mut conn)) => alone(&mut conn, job.as_mut()).await,
            Some(Err(error)) => Err(NotKept::NotBegun(error)),
            None => Err(NotKept::ReadOnly),
        };
        job.answer(&kept);
    }
}

/// Makes one change in one transaction.
async fn alone(conn: &mut Conn, job: &mut dyn Job) -> Result<(), NotKept> {
    conn.begin().await.map_err(NotKept::NotBegun)?;
    if job.apply(conn).await {
        let kept = conn.execute(sql::COMMIT, &[]).await.map(drop);
        kept.map_err(NotKept::Undone)
    } else {
        // The connection may be gone, and the transaction with it.
        let _ = conn.execute(sql::ROLLBACK, &[]).await;
        Ok(())
    }
}

async fn work_together(db: Arc<Db>, mut waiting: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = waiting.recv().await {
        let mut group = vec![first];
        let kept = match db.writer().await {
            Some(Ok(mut conn)) => {
                let kept = commit(&mut conn, &mut group, Some(&mut waiting)).await;
                if group.len() > 1 && matches!(kept, Err(NotKept::Undone(_))) {
                    each_alone(&mut conn, group).await;
                    continue;
                }
                kept
            }
            Some(Err(error)) => Err(NotKept::NotBegun(error)),
            None => Err(NotKept::ReadOnly),
        };
        for job in group {
            job.answer(&kept);
        }
    }
}

async fn each_alone(conn: &mut Conn, group: Vec<Box<dyn Job>>) {
    for job in group {
        let mut alone = vec![job];
        let kept = commit(conn, &mut alone, None).await;
        for job in alone {
            job.answer(&kept);
        }
    }
}

/// Makes the changes of a group, and of those that `waiting` brings meanwhile, in one transaction.
async fn commit(
    conn: &mut Conn,
    group: &mut Vec<Box<dyn Job>>,
    mut waiting: Option<&mut mpsc::Receiver<Box<dyn Job>>>,
) -> Result<(), NotKept> {
    conn.begin().await.map_err(NotKept::NotBegun)?;
    let mut done = 0;
    let outcome = loop {
        let Some(job) = group.get_mut(done) else {
            break conn.execute(sql::COMMIT, &[]).await.map(drop);
        };
        // Some failures end the whole transaction (a full disk does); then the savepoint is gone too, and so is
        // what the others did.
        if let Err(error) = one(conn, job.as_mut()).await {
            break Err(error);
        }
        done += 1;
        if let Some(waiting) = &mut waiting
            && done == group.len()
            && done < MOST_PER_COMMIT
        {
            group.extend(waiting.try_recv());
        }
    };
    if outcome.is_err() {
        // It may be over already; what matters is that none is open.
        let _ = conn.execute(sql::ROLLBACK, &[]).await;
    }
    outcome.map_err(NotKept::Undone)
}

async fn one(conn: &mut Conn, job: &mut dyn Job) -> Result<(), sqlx::Error> {
    conn.execute(sql::SAVEPOINT, &[]).await?;
    if !job.apply(conn).await {
        conn.execute(sql::ROLLBACK_TO, &[]).await?;
    }
    conn.execute(sql::RELEASE, &[]).await.map(drop)
}
