//! One end of a connection: a stream, and what was read from it but not yet used.
//!
//! Reads go without a control buffer, so that a descriptor that is passed along is dropped by the kernel (S-33). Each
//! read has a time limit. This module does not know what the bytes mean, only where a head ends.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Malformed;

const MAX_HEAD: usize = 32 * 1024;
const CHUNK: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A stream with what was read ahead.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    ahead: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
        }
    }

    /// Gives the stream back, with what was read from it but not used.
    pub(crate) fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.ahead)
    }

    /// What was read but not used.
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Uses up bytes that were read.
    pub(crate) fn consume(&mut self, count: usize) {
        self.ahead.drain(..count);
    }

    /// Reads more; 0 is the end.
    pub(crate) async fn fill(&mut self, limit: Duration) -> Result<usize, Malformed> {
        self.ahead.reserve(CHUNK);
        match timeout(limit, self.stream.read_buf(&mut self.ahead)).await {
            Ok(Ok(count)) => Ok(count),
            Ok(Err(_)) => Err(Malformed::Ended),
            Err(_) => Err(Malformed::TooSlow),
        }
    }

    /// Reads a whole head, with its final empty line; `None` is an end, or silence, before the first byte.
    ///
    /// Waits `idle` for the first byte and `limit` for all the rest together.
    pub(crate) async fn head(
        &mut self,
        idle: Duration,
        limit: Duration,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        if self.ahead.is_empty() {
            match self.fill(idle).await {
                Ok(0) | Err(Malformed::TooSlow) => return Ok(None),
                Ok(_) => {}
                Err(malformed) => return Err(malformed),
            }
        }
        match timeout(limit, self.rest_of_head(limit)).await {
            Ok(head) => head.map(Some),
            Err(_) => Err(Malformed::TooSlow),
        }
    }

    async fn rest_of_head(&mut self, limit: Duration) -> Result<Vec<u8>, Malformed> {
        let mut searched = 0;
        loop {
            let found = self.ahead[searched..]
                .windows(HEAD_END.len())
                .position(|window| window == HEAD_END);
            if let Some(at) = found {
                let after = searched + at + HEAD_END.len();
                let rest = self.ahead.split_off(after);
                return Ok(std::mem::replace(&mut self.ahead, rest));
            }
            if self.ahead.len() >= MAX_HEAD {
                return Err(Malformed::TooLong);
            }
            searched = self.ahead.len().saturating_sub(HEAD_END.len() - 1);
            if self.fill(limit).await? == 0 {
                return Err(Malformed::Ended);
            }
        }
    }

    /// Writes all of it.
    pub(crate) async fn send(&mut self, bytes: &[u8], limit: Duration) -> Result<(), Malformed> {
        match timeout(limit, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Malformed::Ended),
            Err(_) => Err(Malformed::TooSlow),
        }
    }
}
