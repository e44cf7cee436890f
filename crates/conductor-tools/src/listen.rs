//! Takes connections and answers what arrives on them, each in its time and only so many at once.
//!
//! Whoever opens a connection and says nothing, or says it a letter at a time, is hung up on; so is whoever asks and takes
//! no byte of the answer for a while. What is said is answered by whoever is served, who gives bodies their own time. The
//! doors of tools and of pages both listen here. This module does not know what is asked.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// What a client may take up.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How long it may take to say what it wants, from the connection or the last answer on.
    pub head: Duration,
    /// How long it may take no byte of what there is to write. An answer that is read slowly, or has nothing to say for a
    /// while, may go on for as long as it likes.
    pub write: Duration,
    /// How many connections there may be at once; more wait until one is over. A process may have a thousand files, and
    /// runs need some, too.
    pub connections: usize,
    /// How long the rest may take when all is over.
    pub farewell: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            write: Duration::from_secs(30),
            connections: 512,
            farewell: Duration::MAX,
        }
    }
}

/// Answers until it is told to stop; then nothing new is taken, and what is under way has its time to finish.
pub async fn serve<L>(mut listener: L, app: Router, bounds: Bounds, stop: CancellationToken)
where
    L: Listener<Addr: Clone + Debug + Sync>,
{
    let room = Arc::new(Semaphore::new(bounds.connections));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let taken = async {
            let seat = room.clone().acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, (io, peer)) = tokio::select! {
            () = stop.cancelled() => break,
            taken = taken => taken,
        };
        let (app, stop) = (app.clone(), stop.clone());
        connections.spawn(async move {
            let _seat = seat;
            answer(io, peer, app, bounds, stop).await;
        });
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    // Who is still there then has a call that does not end or reads nothing; both end with their connection.
    let _left = tokio::time::timeout(bounds.farewell, rest).await;
}

async fn answer<I, A>(io: I, peer: A, app: Router, bounds: Bounds, stop: CancellationToken)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Clone + Debug + Send + Sync + 'static,
{
    let who = peer.clone();
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer.clone()));
        app.clone().call(request.map(Body::new))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head);
    let io = Paced {
        io,
        patience: bounds.write,
        stuck: None,
    };
    let connection = http.serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Whoever hangs up, is hung up on or speaks no HTTP is nothing for an operator to act on.
        tracing::debug!(%error, peer = ?who, "a connection ended early");
    }
}

/// A connection that fails when something is to be written and nothing can be for a while.
struct Paced<I> {
    io: I,
    patience: Duration,
    /// Runs only while a write waits; whatever is written ends it.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<I> Paced<I> {
    /// Lets a write that waits wait on, for so long and no longer.
    fn paced<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self
            .stuck
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        let over = || io::Error::new(io::ErrorKind::TimedOut, "the client does not read");
        stuck.as_mut().poll(cx).map(|()| Err(over()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Paced<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Paced<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.paced(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.paced(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.paced(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.paced(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Longer than anything here takes; whoever waits so long waits for ever.
    const FOR_EVER: Duration = Duration::from_secs(20);
    /// More than any two ends keep for each other.
    const LARGE: usize = 64 * 1024 * 1024;

    struct Served {
        address: SocketAddr,
        stop: CancellationToken,
        server: tokio::task::JoinHandle<()>,
    }

    async fn served(bounds: Bounds) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let told = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
        let app = Router::new()
            .route("/", get(told))
            .route("/large", get(|| async { vec![b'x'; LARGE] }));
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, app, bounds, stop.clone()));
        Served {
            address,
            stop,
            server,
        }
    }

    /// Says something and listens until the other end hangs up.
    async fn said(stream: &mut TcpStream, words: &str) -> String {
        stream.write_all(words.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        let heard = tokio::time::timeout(FOR_EVER, stream.read_to_end(&mut answer)).await;
        // Who was not yet let in when the listener went is hung up on by a reset.
        let is_over = |error: std::io::Error| (error.kind() == ErrorKind::ConnectionReset).then_some(0);
        let heard = heard.expect("it never hangs up");
        heard
            .or_else(|error| is_over(error).ok_or(()))
            .expect("it is read");
        String::from_utf8(answer).expect("text")
    }

    /// SEC-7, TOOL-1, S-44: a client that says nothing, or never ends saying what it wants, is hung up on; so is one that had an answer.
    #[tokio::test]
    async fn a_client_that_takes_its_time_is_hung_up_on() {
        let served = served(Bounds {
            head: Duration::from_millis(100),
            ..Bounds::default()
        })
        .await;
        for words in [
            "",
            "G",
            "GET / HTTP/1.1\r\nhost: a\r\nx: ",
            "GET / HTTP/1.1\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(served.address).await.expect("it listens");
            let own = stream.local_addr().expect("an address").to_string();
            let answer = said(&mut stream, words).await;
            assert_eq!(
                answer.contains(&own),
                words.ends_with("\r\n\r\n"),
                "{words:?}: {answer}"
            );
        }
    }

    /// SEC-7: more clients than there is room for wait, and come in when another is over; none is lost.
    #[tokio::test]
    async fn only_so_many_are_inside_at_once() {
        let served = served(Bounds {
            connections: 2,
            ..Bounds::default()
        })
        .await;
        let first = TcpStream::connect(served.address).await.expect("it listens");
        let second = TcpStream::connect(served.address).await.expect("it listens");
        let mut third = TcpStream::connect(served.address).await.expect("it waits");
        third
            .write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
            .await
            .expect("it waits");
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(300), third.read(&mut byte)).await;
        assert!(early.is_err(), "a third came in beside two");
        drop((first, second));
        let answer = said(&mut third, "").await;
        assert!(
            answer.starts_with("TTP/1.1 200") || answer.starts_with("HTTP/1.1 200"),
            "{answer}"
        );
    }

    /// SEC-7: a client that does not read what it asked for has its seat for so long and no longer.
    #[tokio::test]
    async fn a_client_that_does_not_read_is_hung_up_on() {
        let served = served(Bounds {
            write: Duration::from_millis(200),
            connections: 1,
            ..Bounds::default()
        })
        .await;
        let mut deaf = TcpStream::connect(served.address).await.expect("it listens");
        deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n")
            .await
            .expect("it listens");
        let mut next = TcpStream::connect(served.address).await.expect("it waits");
        let answer = said(&mut next, "GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let left = said(&mut deaf, "").await;
        assert!(left.len() < LARGE, "it was told everything");
    }

    /// SEC-7: a client that reads slowly, and all in all for longer than it may stand still, gets everything.
    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_everything() {
        let served = served(Bounds {
            write: Duration::from_secs(1),
            ..Bounds::default()
        })
        .await;
        let mut slow = TcpStream::connect(served.address).await.expect("it listens");
        slow.write_all(b"GET /large HTTP/1.1\r\nconnection: close\r\n\r\n")
            .await
            .expect("it listens");
        let mut part = vec![0; LARGE / 64];
        for _ in 0..64 {
            slow.read_exact(&mut part).await.expect("it is not hung up on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The head came first, so that as much of the body is left.
        let rest = said(&mut slow, "").await;
        assert!(
            !rest.is_empty() && rest.bytes().all(|byte| byte == b'x'),
            "{rest}"
        );
    }

    /// TOOL-4: the end of a lease is the end, also for a client that does not take its answer.
    #[tokio::test]
    async fn it_stops_when_told_with_clients_that_say_or_read_nothing() {
        let served = served(Bounds {
            farewell: Duration::from_millis(200),
            ..Bounds::default()
        })
        .await;
        let mut silent = TcpStream::connect(served.address).await.expect("it listens");
        let mut deaf = TcpStream::connect(served.address).await.expect("it listens");
        deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n")
            .await
            .expect("it listens");
        let mut byte = [0];
        deaf.read_exact(&mut byte).await.expect("an answer begins");
        served.stop.cancel();
        let stopped = tokio::time::timeout(FOR_EVER, served.server).await;
        stopped.expect("it never stops").expect("no panic");
        assert_eq!(said(&mut silent, "").await, "");
    }
}
