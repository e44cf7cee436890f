//! A git server on loopback: `git http-backend` behind a few lines of HTTP, or something that misbehaves.
//!
//! It remembers every request's path and credentials. This module does not know what is asked of it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How the server answers.
#[derive(Clone)]
pub(crate) enum Manner {
    /// Serves the repositories below a directory to whoever has the token.
    Repositories { root: PathBuf, token: String },
    /// Sends everybody elsewhere.
    Redirect { to: String },
    /// Answers with this status.
    Status(&'static str),
}

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    kind: String,
    encoding: String,
    protocol: String,
    length: usize,
}

impl Server {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, manner.clone(), log.clone()));
            }
        });
        Self { port, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/o/n.git", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, manner: Manner, log: Arc<Mutex<Vec<Request>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let request = parse(&String::from_utf8(head).unwrap());
    let mut body = vec![0; request.length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    log.lock().unwrap().push(request.clone());
    let reply = match manner {
        Manner::Status(status) => format!("HTTP/1.1 {status}\r\n\r\n").into_bytes(),
        Manner::Redirect { to } => {
            let target = request.line.split(' ').nth(1).unwrap();
            format!("HTTP/1.1 302 Found\r\nLocation: {to}{target}\r\n\r\n").into_bytes()
        }
        Manner::Repositories { root, token } => {
            let expected = conductor_basic(&token);
            if request.authorization.as_deref() == Some(&expected) {
                backend(&root, &request, &body).await
            } else {
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n".to_vec()
            }
        }
    };
    let _ = stream.write_all(&reply).await;
    let _ = stream.shutdown().await;
}

fn conductor_basic(token: &str) -> String {
    use base64::Engine as _;
    format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"))
    )
}

fn parse(head: &str) -> Request {
    let mut lines = head.lines();
    let mut request = Request {
        line: lines.next().unwrap().to_owned(),
        ..Request::default()
    };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let value = value.to_owned();
        match name.to_ascii_lowercase().as_str() {
            "authorization" => request.authorization = Some(value),
            "content-type" => request.kind = value,
            "content-encoding" => request.encoding = value,
            "content-length" => request.length = value.parse().unwrap(),
            "git-protocol" => request.protocol = value,
            _ => {}
        }
    }
    request
}

async fn backend(root: &std::path::Path, request: &Request, body: &[u8]) -> Vec<u8> {
    let mut parts = request.line.split(' ');
    let (method, target) = (parts.next().unwrap(), parts.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", &request.kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", &request.encoding)
        .env("GIT_PROTOCOL", &request.protocol)
        .env("REMOTE_USER", "conductor")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body).await.unwrap();
    let output = child.wait_with_output().await.unwrap().stdout;
    let end = output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let headers = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = headers
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let mut reply = format!("HTTP/1.1 {status}\r\n{headers}\r\n\r\n").into_bytes();
    reply.extend_from_slice(&output[end + 4..]);
    reply
}
