//! Takes connections and answers what arrives on them, each in its time and only so many at once.
//!
//! Whoever opens a connection and says nothing, or says it a letter at a time, is hung up on. A client that does not read
//! its answers keeps its own seat and nobody else's: strangers get one short answer and are hung up on. This module does not
//! know what is asked.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// What clients may take up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How long one may take to say what it wants, from the connection or the last answer on.
    pub(crate) head: Duration,
    /// How many connections there may be at once; more wait until one is over. Each may hold a message of the largest size.
    pub(crate) connections: usize,
    /// How long the rest may take when all is over.
    pub(crate) farewell: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            connections: 32,
            farewell: Duration::from_secs(5),
        }
    }
}

/// Answers until it is told to stop; then nothing new is taken, and who does not take its last answer is left.
pub(crate) async fn serve<L>(mut listener: L, app: Router, bounds: Bounds, stop: CancellationToken)
where
    L: Listener,
{
    let room = Arc::new(Semaphore::new(bounds.connections));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let taken = async {
            let seat = room.clone().acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, (io, _peer)) = tokio::select! {
            () = stop.cancelled() => break,
            taken = taken => taken,
        };
        let (app, stop) = (app.clone(), stop.clone());
        connections.spawn(async move {
            let _seat = seat;
            answer(io, app, bounds, stop).await;
        });
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    // Who is still there then has a call that does not end or reads nothing; both end with their connection.
    let _left = tokio::time::timeout(bounds.farewell, rest).await;
}

async fn answer<I>(io: I, app: Router, bounds: Bounds, stop: CancellationToken)
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        app.clone().call(request.map(Body::new))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head);
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
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Longer than anything here takes; whoever waits so long waits for ever.
    const FOR_EVER: Duration = Duration::from_secs(20);
    /// More than any two ends keep for each other.
    const LARGE: usize = 64 * 1024 * 1024;
    const ASK: &str = "GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

    struct Served {
        address: SocketAddr,
        stop: CancellationToken,
        server: tokio::task::JoinHandle<()>,
    }

    async fn served(bounds: Bounds) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/large", get(|| async { vec![b'x'; LARGE] }));
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, app, bounds, stop.clone()));
        Served {
            address,
            stop,
            server,
        }
    }

    async fn connected(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("it listens")
    }

    /// Says something and listens until the other end hangs up.
    async fn said(stream: &mut TcpStream, words: &str) -> String {
        stream.write_all(words.as_bytes()).await.expect("it listens");
        let mut answer = String::new();
        let heard = tokio::time::timeout(FOR_EVER, stream.read_to_string(&mut answer)).await;
        heard.expect("it never hangs up").expect("it is read");
        answer
    }

    /// TOOL-1, S-44: a client that says nothing, or never ends saying what it wants, is hung up on; so is one that had its
    /// answer and keeps its seat.
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
            let answer = said(&mut connected(served.address).await, words).await;
            assert_eq!(
                answer.ends_with("here"),
                words.ends_with("\r\n\r\n"),
                "{words:?}: {answer}"
            );
        }
    }

    /// TOOL-1, S-44: idle clients without number take only the seats that there are, each for its time, and none is lost
    /// who waits behind them.
    #[tokio::test]
    async fn whoever_waits_behind_idle_clients_comes_in_after_them() {
        let served = served(Bounds {
            head: Duration::from_millis(300),
            connections: 2,
            ..Bounds::default()
        })
        .await;
        let mut idle = Vec::new();
        for _ in 0..6 {
            idle.push(connected(served.address).await);
        }
        let mut honest = connected(served.address).await;
        honest.write_all(ASK.as_bytes()).await.expect("it waits");
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(200), honest.read(&mut byte)).await;
        assert!(early.is_err(), "it came in beside two");
        let answer = said(&mut honest, "").await;
        assert!(answer.ends_with("here"), "{answer}");
    }

    /// TOOL-4: the end of a lease is the end, also for a client that does not take its answer.
    #[tokio::test]
    async fn it_stops_when_told_with_clients_that_say_or_read_nothing() {
        let served = served(Bounds {
            farewell: Duration::from_millis(200),
            ..Bounds::default()
        })
        .await;
        let mut silent = connected(served.address).await;
        let mut deaf = connected(served.address).await;
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
