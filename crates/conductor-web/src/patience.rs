//! Gives the body of every request its time; whoever sends slower is told so, and keeps nobody else waiting.
//!
//! A body is bounded in bytes where it is read; a byte a minute would hold a place in every queue for days. The listener
//! bounds what stands before the body. This module does not know what is sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};

use crate::error::Error;

/// How long a whole body may take; the largest comes in this time over a poor line.
pub(crate) const BODY: Duration = Duration::from_mins(1);

/// Lets a request through whose body ends in time, and answers one whose body does not.
pub(crate) async fn bodies(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let late = is_late.clone();
    let (parts, body) = request.into_parts();
    let reading = (body.into_data_stream(), Box::pin(tokio::time::sleep(BODY)));
    let timed = stream::unfold(Some(reading), move |reading| {
        let late = late.clone();
        async move {
            let (mut body, mut time) = reading?;
            tokio::select! {
                part = body.next() => Some((part?.map_err(io::Error::other), Some((body, time)))),
                () = &mut time => {
                    late.store(true, Ordering::Relaxed);
                    Some((Err(io::ErrorKind::TimedOut.into()), None))
                }
            }
        }
    });
    let response = next
        .run(Request::from_parts(parts, Body::from_stream(timed)))
        .await;
    if is_late.load(Ordering::Relaxed) {
        return Error::TooSlow.into_response();
    }
    response
}
