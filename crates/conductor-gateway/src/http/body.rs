//! Carries a body from one wire to another, framed anew by us.
//!
//! Chunks come in whatever sizes and go out as they were read, so nothing is held back and little is held at all. Chunk
//! extensions and trailers are refused: nobody needs them, and readers disagree about them. This module does not know
//! which side is the client.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Body, Malformed, Wire};

/// The longest line that says how long a chunk is: 15 digits and a line end.
const MAX_SIZE_LINE: usize = 17;

/// Which side a body failed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relayed {
    Whole,
    /// The sender did not keep to its framing.
    BadSender(Malformed),
    /// The receiver takes no more.
    LostReceiver,
}

/// Carries a body.
pub(crate) async fn relay<A, B>(from: &mut Wire<A>, to: &mut Wire<B>, body: Body, idle: Duration) -> Relayed
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let mut relay = Relay { from, to, idle };
    let done = match body {
        Body::None => Ok(()),
        Body::Length(length) => relay.bytes(length, Framing::Raw).await,
        Body::Chunked => relay.chunks().await,
        Body::UntilEnd => relay.until_end().await,
    };
    match done {
        Ok(()) => Relayed::Whole,
        Err(Side::Sender(malformed)) => Relayed::BadSender(malformed),
        Err(Side::Receiver) => Relayed::LostReceiver,
    }
}

enum Side {
    Sender(Malformed),
    Receiver,
}

#[derive(Clone, Copy)]
enum Framing {
    Raw,
    Chunk,
}

struct Relay<'a, A, B> {
    from: &'a mut Wire<A>,
    to: &'a mut Wire<B>,
    idle: Duration,
}

impl<A, B> Relay<'_, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    async fn chunks(&mut self) -> Result<(), Side> {
        loop {
            let size = self.size_line().await?;
            if size == 0 {
                // Whatever stands here but the final line end would be a trailer.
                self.line_end().await?;
                return self.send(b"0\r\n\r\n").await;
            }
            self.bytes(size, Framing::Chunk).await?;
            self.line_end().await?;
        }
    }

    async fn bytes(&mut self, mut left: u64, framing: Framing) -> Result<(), Side> {
        while left > 0 {
            self.want(1).await?;
            let here = self.from.ahead().len();
            let count = usize::try_from(left).map_or(here, |left| left.min(here));
            let piece = self.from.ahead()[..count].to_vec();
            self.from.consume(count);
            match framing {
                Framing::Raw => self.send(&piece).await?,
                Framing::Chunk => {
                    let mut chunk = format!("{count:x}\r\n").into_bytes();
                    chunk.extend_from_slice(&piece);
                    chunk.extend_from_slice(b"\r\n");
                    self.send(&chunk).await?;
                }
            }
            left -= count as u64;
        }
        Ok(())
    }

    async fn until_end(&mut self) -> Result<(), Side> {
        loop {
            let piece = self.from.ahead().to_vec();
            self.from.consume(piece.len());
            self.send(&piece).await?;
            if self.from.fill(self.idle).await.map_err(Side::Sender)? == 0 {
                return Ok(());
            }
        }
    }

    async fn size_line(&mut self) -> Result<u64, Side> {
        const BAD: Side = Side::Sender(Malformed::Grammar("a chunk of no clear size"));
        loop {
            let ahead = self.from.ahead();
            let window = &ahead[..ahead.len().min(MAX_SIZE_LINE)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
                let digits = window[..end].strip_suffix(b"\r").ok_or(BAD)?;
                let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
                let text = std::str::from_utf8(digits).ok().filter(|_| is_hex).ok_or(BAD)?;
                let size = u64::from_str_radix(text, 16).map_err(|_| BAD)?;
                self.from.consume(end + 1);
                return Ok(size);
            }
            if ahead.len() >= MAX_SIZE_LINE {
                return Err(BAD);
            }
            self.want(ahead.len() + 1).await?;
        }
    }

    async fn line_end(&mut self) -> Result<(), Side> {
        self.want(2).await?;
        if !self.from.ahead().starts_with(b"\r\n") {
            return Err(Side::Sender(Malformed::Grammar(
                "a chunk that does not end, or a trailer",
            )));
        }
        self.from.consume(2);
        Ok(())
    }

    /// Reads until at least so many bytes are there.
    async fn want(&mut self, count: usize) -> Result<(), Side> {
        while self.from.ahead().len() < count {
            if self.from.fill(self.idle).await.map_err(Side::Sender)? == 0 {
                return Err(Side::Sender(Malformed::Ended));
            }
        }
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Side> {
        self.to.send(bytes, self.idle).await.map_err(|_| Side::Receiver)
    }
}
