//! Speaks to the running server over its HTTP door.
//!
//! The token travels to loopback only, never through a proxy and never after a redirect. This module does not know what is
//! asked, nor how it is shown.

use std::time::Duration;

use conductor_domain::digest::Digest;
use conductor_web::api::{EventView, Health, Problem, StateChange, TalkView};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::{Method, RequestBuilder, Response, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::server_file::ServerFile;

/// How long a server may take to answer; starting a run asks the forge first.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
    patience: Duration,
}

/// Something on a run's stream.
#[derive(Debug)]
pub(crate) enum Message {
    /// A record was committed.
    Record(Box<EventView>),
    /// Where the run stands now.
    State(Box<StateChange>),
    /// An agent said something.
    Talk(TalkView),
    /// The server cannot go on.
    Problem(Problem),
}

impl Client {
    /// Prepares to speak to a server.
    pub(crate) fn new(server: &ServerFile) -> Result<Self, Failure> {
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5));
        if !server.url.starts_with("https:") {
            // Reading the machine's certificates is most of what a short command would do.
            http = http.tls_certs_only([]);
        }
        let http = http
            .build()
            .map_err(|error| Failure::because("preparing to speak to the server", &error))?;
        Ok(Self {
            http,
            url: server.url.clone(),
            token: server.token.clone(),
            patience: PATIENCE,
        })
    }

    /// The server's address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks whether the server is there.
    pub(crate) async fn health(&self) -> Result<Health, Failure> {
        self.get("/health").await
    }

    /// Reads something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self
            .send(self.request(Method::GET, path).timeout(self.patience))
            .await?;
        self.parse(response).await
    }

    /// Reads kept bytes.
    pub(crate) async fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, Failure> {
        let path = format!("/artifacts/{digest}");
        let response = self
            .send(self.request(Method::GET, &path).timeout(self.patience))
            .await?;
        Ok(response
            .bytes()
            .await
            .map_err(|error| self.unanswered(&error))?
            .to_vec())
    }

    /// Reads a file of any size, piece by piece; one that ends early is a failure.
    pub(crate) async fn file(
        &self,
        path: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Failure>>, Failure> {
        let client = self.clone();
        let response = self.send(self.request(Method::GET, path)).await?;
        let pieces = response.bytes_stream();
        Ok(pieces
            .map(move |piece| match piece {
                Ok(piece) => Ok(piece.to_vec()),
                Err(error) => Err(client.unanswered(&error)),
            })
            .boxed())
    }

    /// Asks for something.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self
            .send(self.request(Method::POST, path).timeout(self.patience).json(body))
            .await?;
        self.parse(response).await
    }

    /// Follows a run from the record after `after` on.
    pub(crate) async fn follow(&self, run: &str, after: u64) -> Result<BoxStream<'static, Message>, Failure> {
        let path = format!("/runs/{run}/stream?after={after}");
        let response = self.send(self.request(Method::GET, &path)).await?;
        let mut frames = Frames::default();
        let messages = response
            .bytes_stream()
            .take_while(|chunk| std::future::ready(chunk.is_ok()))
            .map(move |chunk| futures_util::stream::iter(frames.take_in(&chunk.unwrap_or_default())))
            .flatten();
        Ok(messages.boxed())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}/api/v1{path}", self.url))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.unanswered(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| self.unanswered(&error))?;
        Err(match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => problem.into(),
            Err(_) => Failure::new(format!("the server at {} answered {status}", self.url)),
        })
    }

    async fn parse<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        let bytes = response.bytes().await.map_err(|error| self.unanswered(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::coded(
                "CDR0410",
                format!(
                    "the server at {} answered something else than expected: {error}",
                    self.url
                ),
                "server and command must be of the same version; restart the server",
            )
        })
    }

    /// Tells a server that is slow from one that is not there: the first may still do what it was asked.
    fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let url = &self.url;
        // Whoever could not connect in time has asked nothing.
        if error.is_timeout() && !error.is_connect() {
            return Failure::coded(
                "CDR0422",
                format!(
                    "the server at {url} is there, and has not answered within {} seconds; it may still do what it was asked",
                    self.patience.as_secs()
                ),
                "look at what was done before you ask again: `conductor run list`",
            )
            .exiting(Exit::NoAnswer);
        }
        let what = format!(
            "the server at {url} does not answer: {}",
            crate::exit::chain(error)
        );
        Failure::coded("CDR0401", what, "start `conductor serve`").exiting(Exit::NoServer)
    }
}

/// Cuts server-sent events out of bytes as they come.
#[derive(Debug, Default)]
struct Frames {
    rest: Vec<u8>,
    event: String,
    data: String,
}

impl Frames {
    fn take_in(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.rest.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                messages.extend(self.finish());
            } else if let Some(event) = line.strip_prefix("event:") {
                event.trim().clone_into(&mut self.event);
            } else if let Some(data) = line.strip_prefix("data:") {
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        messages
    }

    fn finish(&mut self) -> Option<Message> {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        match event.as_str() {
            "record" => serde_json::from_str(&data).ok().map(Message::Record),
            "state" => serde_json::from_str(&data).ok().map(Message::State),
            "talk" => serde_json::from_str(&data).ok().map(Message::Talk),
            "problem" => serde_json::from_str(&data).ok().map(Message::Problem),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::time::Timestamp;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// What becomes of a question to whoever listens at an address.
    async fn asked(listener: &TcpListener, patience: Duration) -> Failure {
        let server = ServerFile {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            token: "t".to_owned(),
            pid: 1,
            pid_start: None,
            started_at: Timestamp(1),
        };
        let client = Client {
            patience,
            ..Client::new(&server).expect("a client")
        };
        let answer: Result<serde_json::Value, Failure> = client.post("/runs", &()).await;
        answer.expect_err("nothing was answered")
    }

    /// A server that takes a request and is slow, with the answer or in the midst of it, is not told to be absent: whoever
    /// believed that would start another one, or ask for the same twice.
    #[tokio::test]
    async fn a_slow_server_is_told_from_none() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"] {
            let slow = async {
                let (mut stream, _peer) = listener.accept().await.expect("a client");
                let mut heard = vec![0; 5];
                stream.read_exact(&mut heard).await.expect("it asks");
                assert_eq!(heard, b"POST ");
                stream.write_all(begun.as_bytes()).await.expect("it listens");
                stream.read_to_end(&mut heard).await.expect("it hangs up");
            };
            let (failure, ()) = tokio::join!(asked(&listener, Duration::from_secs(1)), slow);
            assert_eq!(failure.code.as_deref(), Some("CDR0422"), "{failure:?}");
            assert_eq!(failure.exit, Exit::NoAnswer);
            assert!(failure.what.contains("may still do"), "{failure:?}");
            let hint = failure.hint.as_deref().unwrap_or_default();
            assert!(
                hint.contains("conductor run list") && !hint.contains("serve"),
                "{hint}"
            );
        }
        // One that hangs up instead is gone.
        let gone = async {
            let _hung_up = listener.accept().await.expect("a client");
        };
        let (failure, ()) = tokio::join!(asked(&listener, PATIENCE), gone);
        assert_eq!(failure.code.as_deref(), Some("CDR0401"), "{failure:?}");
        assert_eq!(failure.exit, Exit::NoServer);
    }

    #[test]
    fn events_are_cut_out_wherever_the_bytes_are_split() {
        let stream = b": keep-alive\n\nevent: talk\ndata: {\"effect\":\"r.1.0\",\"text\":\"h\xc3\xa9\"}\n\nevent: later\ndata: {}\n\nid: 3\nevent: talk\ndata: {\"effect\":\"r.1.0\",\"text\":\"b\"}\n\n";
        for split in 0..stream.len() {
            let mut frames = Frames::default();
            let (one, two) = stream.split_at(split);
            let words: Vec<String> = [one, two]
                .iter()
                .flat_map(|part| frames.take_in(part))
                .map(|message| match message {
                    Message::Talk(talk) => talk.text,
                    Message::Record(_) | Message::State(_) | Message::Problem(_) => panic!("{message:?}"),
                })
                .collect();
            assert_eq!(words, ["hé", "b"], "split at {split}");
        }
    }
}
