//! A stage for the world outside, an open door, and servers on loopback.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_domain::egress::{EgressDenial, EgressReason, EgressWay, Grant, HostName, HostPattern};
use conductor_domain::id::{EffectId, RunId};
use conductor_gateway::Switch;
use conductor_gateway::door::{Door, Doors, Token};
use conductor_gateway::egress::{Denials, Egress, Limits, Outside, Visitor};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

pub(crate) const TOKEN: &str = "the-token-of-this-sandbox";
/// A public address that nobody is asked about: the stage leads it to loopback.
pub(crate) const PUBLIC: &str = "93.184.216.34";
pub(crate) const NAME: &str = "files.example";

/// The world outside, as a test tells it.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) names: HashMap<String, Vec<IpAddr>>,
    pub(crate) servers: HashMap<SocketAddr, SocketAddr>,
    pub(crate) own: Vec<IpAddr>,
    /// What names lead to from the second question on, where that is something else.
    pub(crate) later: HashMap<String, Vec<IpAddr>>,
    /// All that was asked of it, in order.
    pub(crate) log: Mutex<Vec<String>>,
}

impl Stage {
    /// `NAME` leads to a public address, and its two ports to this server.
    pub(crate) fn with(server: SocketAddr) -> Self {
        let public: IpAddr = PUBLIC.parse().expect("an address");
        Self {
            names: HashMap::from([(NAME.to_owned(), vec![public])]),
            servers: [80, 443, 8443]
                .into_iter()
                .map(|port| ((public, port).into(), server))
                .collect(),
            ..Self::default()
        }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().expect("not poisoned").clone()
    }
}

#[async_trait]
impl Outside for Stage {
    async fn resolve(&self, host: &HostName) -> io::Result<Vec<IpAddr>> {
        let question = format!("resolve {host}");
        let mut log = self.log.lock().expect("not poisoned");
        let names = match self.later.get(host.as_str()) {
            Some(_) if log.contains(&question) => &self.later,
            Some(_) | None => &self.names,
        };
        log.push(question);
        names
            .get(host.as_str())
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.log
            .lock()
            .expect("not poisoned")
            .push(format!("connect {address}"));
        let server = self
            .servers
            .get(&address)
            .ok_or(io::ErrorKind::ConnectionRefused)?;
        TcpStream::connect(server).await
    }
}

/// Keeps what it hears.
#[derive(Debug, Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<EgressDenial>>);

#[async_trait]
impl Denials for Heard {
    async fn denied(&self, _: &RunId, _: &EffectId, denial: EgressDenial) {
        self.0.lock().expect("not poisoned").push(denial);
    }
}

/// A sandbox's door with everything behind it.
pub(crate) struct House {
    pub(crate) stage: Arc<Stage>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) door: Door,
    pub(crate) home: TempDir,
}

pub(crate) fn grant(host: &str, way: EgressWay, ports: &[u16]) -> Grant {
    Grant {
        host: HostPattern::parse(host).expect("a pattern"),
        way,
        ports: ports.to_vec(),
    }
}

/// Both ways to `NAME`, on their usual ports.
pub(crate) fn both_ways() -> Vec<Grant> {
    vec![
        grant(NAME, EgressWay::Tunnel, &[]),
        grant(NAME, EgressWay::Plain, &[]),
    ]
}

pub(crate) fn visitor(effect: &str, token: &str, grants: Vec<Grant>) -> Visitor {
    Visitor {
        run: RunId::parse("r1").expect("a run"),
        effect: EffectId::parse(effect).expect("an effect"),
        token: Token::new(token.to_owned().into()),
        grants,
        commands: Arc::default(),
    }
}

impl House {
    pub(crate) fn new(stage: Stage) -> Self {
        Self::with(stage, both_ways(), Limits::default())
    }

    pub(crate) fn with(stage: Stage, grants: Vec<Grant>, limits: Limits) -> Self {
        Self::without(stage, grants, limits, &[])
    }

    /// One that lacks these protections.
    pub(crate) fn without(stage: Stage, grants: Vec<Grant>, limits: Limits, switches: &[Switch]) -> Self {
        let (stage, heard) = (Arc::new(stage), Arc::new(Heard::default()));
        let home = tempfile::tempdir().expect("a directory");
        let doors = Doors::below(&home.path().join("sockets")).expect("a parent");
        let egress = Egress::new(Arc::clone(&stage) as _, Arc::clone(&heard) as _, limits);
        let egress = switches
            .iter()
            .fold(egress, |egress, switch| egress.without(*switch));
        let door = egress
            .open(&doors, visitor("r1.7.0", TOKEN, grants))
            .expect("a door");
        Self {
            stage,
            heard,
            door,
            home,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.door.directory().join(self.door.socket())
    }

    pub(crate) async fn knock(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.expect("a socket")
    }

    /// Says something and listens to the end of the answer.
    pub(crate) async fn say(&self, words: impl AsRef<[u8]>) -> String {
        let mut stream = self.knock().await;
        // A refusal may come before everything is said.
        let _ = stream.write_all(words.as_ref()).await;
        let _ = stream.shutdown().await;
        listen(&mut stream).await
    }

    pub(crate) fn denials(&self) -> Vec<EgressDenial> {
        self.heard.0.lock().expect("not poisoned").clone()
    }

    pub(crate) fn reasons(&self) -> Vec<EgressReason> {
        self.denials().iter().map(|denial| denial.reason).collect()
    }
}

/// Listens to the end, or to where the other side broke off.
pub(crate) async fn listen(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            answer.extend_from_slice(&piece[..count]);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .expect("an answer that ends");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The field that shows a token.
pub(crate) fn showing(token: &str) -> String {
    format!(
        "Proxy-Authorization: Basic {}\r\n",
        STANDARD.encode(format!("call-1:{token}"))
    )
}

/// A request with the right token and these further fields, each with its line end.
pub(crate) fn request(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\n{}{fields}\r\n", showing(TOKEN))
}

/// A server that answers every request with the same bytes, and keeps what it was sent.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn answering(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&received), answer.as_bytes().to_vec());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), answer.clone());
                tokio::spawn(async move {
                    let request = whole_request(&mut stream).await;
                    kept.lock().expect("not poisoned").push(request);
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        Self { address, received }
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("not poisoned").clone()
    }
}

/// Reads one request as a simple server would.
async fn whole_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|length| length.parse::<usize>().ok());
            let chunked = head.contains("transfer-encoding: chunked");
            if body.len() >= length.unwrap_or(0) && (!chunked || body.ends_with("0\r\n\r\n")) {
                break;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
