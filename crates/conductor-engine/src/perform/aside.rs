//! Does long work beside the tasks that wait for something, so that these go on: one of them keeps the lease (DEP-3).
//!
//! What is little is done at once, where it is asked for: another thread would take longer to begin, and a simulation has
//! only one. This module does not know what is done.

use std::panic;

use conductor_domain::fault::Fault;

/// So many bytes are worked through before anybody notices.
const LITTLE: usize = 64 * 1024;

/// Does work that goes through so many bytes.
pub(super) async fn aside<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    if bytes <= LITTLE {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.or_else(|error| match error.try_into_panic() {
        // It is the performer's, wherever it happened.
        Ok(panic) => panic::resume_unwind(panic),
        Err(error) => Err(Fault::transient(format!("the process ends: {error}"))),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// DEP-3: what waits goes on while there is much to do, though the runtime has one thread.
    #[tokio::test]
    async fn others_go_on_beside_long_work() {
        let (sender, receiver) = mpsc::channel();
        let working = aside(LITTLE + 1, move || receiver.recv_timeout(Duration::from_mins(1)));
        let (worked, sent) = tokio::join!(working, async { sender.send("still here") });
        assert_eq!((worked, sent), (Ok(Ok("still here")), Ok(())));
    }

    #[tokio::test]
    async fn little_work_is_done_at_once() {
        let here = thread::current().id();
        assert_eq!(aside(LITTLE, || thread::current().id()).await, Ok(here));
    }

    /// RUN-12: work that breaks breaks its performer, which is told as ever.
    #[tokio::test]
    async fn a_panic_is_passed_on() {
        let task = tokio::spawn(aside(LITTLE + 1, || panic!("as planned")));
        let panic = task.await.expect_err("it panicked").into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    }
}
