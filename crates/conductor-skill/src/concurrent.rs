//! Does many things at once, but not more than a number of them.
//!
//! This module does not know what is done.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Runs futures, at most `limit` at once; the answers stand in the order of the futures.
pub(crate) async fn each<T, F>(limit: usize, work: Vec<F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(limit.max(1)));
    let mut tasks = JoinSet::new();
    let count = work.len();
    for (number, future) in work.into_iter().enumerate() {
        let slots = Arc::clone(&slots);
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _slot = slots.acquire_owned().await;
            (number, future.await)
        });
    }
    let mut answers: Vec<Option<T>> = (0..count).map(|_| None).collect();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok((number, answer)) => answers[number] = Some(answer),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    answers.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// SKILL-1: many at once, but never more than asked for, and the answers keep their order.
    #[tokio::test]
    async fn no_more_than_the_limit_work_at_once() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = (0..40).map(|number: usize| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Lets everybody else begin who may.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                number
            }
        });
        let answers = each(4, work.collect()).await;
        assert_eq!(answers, (0..40).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 4);
    }
}
