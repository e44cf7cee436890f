//! Tunnels: real TLS through them, and every hello that may not pass.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conductor_domain::egress::EgressReason;
use conductor_gateway::egress::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::kit::{House, NAME, Stage, both_ways, listen, request};

/// A certificate for `NAME`, and its key.
pub(crate) struct Identity {
    pub(crate) pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        Self {
            pem: made.cert.pem(),
            certificate: made.cert.der().clone(),
            key: made.signing_key.serialize_der(),
        }
    }

    fn server(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).expect("a key");
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_no_client_auth()
                .with_single_cert(vec![self.certificate.clone()], key)
                .expect("a pair");
        TlsAcceptor::from(Arc::new(config))
    }

    fn client(&self, sni: bool) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("a root");
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.enable_sni = sni;
        Arc::new(config)
    }
}

/// A TLS server that answers one HTTP request, and keeps every raw byte that reached it.
pub(crate) async fn tls_server(identity: &Identity) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let acceptor = identity.server();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret")
                    .await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}

/// A server that keeps every byte that reaches it.
pub(crate) async fn raw_server() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let kept = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&kept);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let received = Arc::clone(&received);
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes).await;
                received.lock().expect("not poisoned").extend(bytes);
            });
        }
    });
    (address, kept)
}

/// Asks for the tunnel and reads the go-ahead.
pub(crate) async fn connect(house: &House) -> UnixStream {
    let mut stream = house.knock().await;
    let words = request(&format!("CONNECT {NAME}:443"), "");
    stream.write_all(words.as_bytes()).await.expect("it listens");
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200 Connection established\r\n\r\n");
    stream
}

/// What a real client says first, to any name.
pub(crate) fn hello_to(name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Identity::new().client(true), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("a hello");
    bytes
}

/// Puts one extension before the others of a hello.
pub(crate) fn with_extension(hello: &[u8], kind: u16, body: &[u8]) -> Vec<u8> {
    let mut at = 5 + 4 + 34;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at += 1 + usize::from(hello[at]);
    let added = [
        &kind.to_be_bytes()[..],
        &u16::try_from(body.len()).expect("short").to_be_bytes(),
        body,
    ]
    .concat();
    let mut changed = [&hello[..at + 2], &added, &hello[at + 2..]].concat();
    let grow = |bytes: &mut [u8]| {
        let old = u16::from_be_bytes([bytes[0], bytes[1]]);
        let new = old + u16::try_from(added.len()).expect("short");
        bytes.copy_from_slice(&new.to_be_bytes());
    };
    grow(&mut changed[3..5]);
    grow(&mut changed[7..9]);
    grow(&mut changed[at..at + 2]);
    changed
}

/// Cuts a hello into records of so many bytes.
pub(crate) fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    hello[5..]
        .chunks(size)
        .flat_map(|piece| {
            let length = u16::try_from(piece.len()).expect("short").to_be_bytes();
            [&[22, 3, 1], &length[..], piece].concat()
        })
        .collect()
}

/// S-39.
#[tokio::test]
async fn real_tls_passes_through_to_the_host_that_was_asked_for() {
    let identity = Identity::new();
    let house = House::new(Stage::with(tls_server(&identity).await));
    let stream = connect(&house).await;
    let name = ServerName::try_from(NAME).expect("a name");
    let mut tls = TlsConnector::from(identity.client(true))
        .connect(name, stream)
        .await
        .expect("a handshake");
    tls.write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .expect("it listens");
    assert!(listen(&mut tls).await.ends_with("secret"));
    assert_eq!(house.denials(), []);
}

/// S-39: the hello is put together from however many records, bytes and pauses it comes in.
#[tokio::test]
async fn a_hello_may_come_in_any_pieces() {
    let hello = hello_to(NAME);
    for (what, bytes, piece) in [
        ("at once", hello.clone(), usize::MAX),
        ("byte by byte", hello.clone(), 1),
        ("in tiny records", in_records(&hello, 1), usize::MAX),
        ("in tiny records, byte by byte", in_records(&hello, 3), 1),
    ] {
        let (address, received) = raw_server().await;
        let house = House::new(Stage::with(address));
        let mut stream = connect(&house).await;
        for piece in bytes.chunks(piece.min(bytes.len())) {
            stream.write_all(piece).await.expect("it listens");
            stream.flush().await.expect("it listens");
            tokio::task::yield_now().await;
        }
        stream.shutdown().await.expect("it listens");
        assert_eq!(listen(&mut stream).await, "", "{what}");
        assert_eq!(*received.lock().expect("not poisoned"), bytes, "{what}");
        assert_eq!(house.denials(), [], "{what}");
    }
}

/// S-39: not one byte goes out before the hello was found right.
#[tokio::test]
async fn no_other_first_message_passes() {
    let right = hello_to(NAME);
    let name_twice = with_extension(&right, 0, &[&[0, 16, 0, 0, 13][..], NAME.as_bytes()].concat());
    let mut without_name = ClientConnection::new(
        Identity::new().client(false),
        ServerName::try_from(NAME).expect("a name"),
    )
    .expect("a client");
    let mut silent = Vec::new();
    without_name.write_tls(&mut silent).expect("a hello");
    let mut behind = right.clone();
    behind.extend_from_slice(b"\x01");
    let length = u16::try_from(behind.len() - 5).expect("short").to_be_bytes();
    behind[3..5].copy_from_slice(&length);
    let mut endless = right.clone();
    endless[6] = 1;
    for (what, bytes, reason) in [
        (
            "another name",
            hello_to("evil.example"),
            EgressReason::OtherServerName,
        ),
        (
            "a name below",
            hello_to("a.files.example"),
            EgressReason::OtherServerName,
        ),
        ("no name", silent, EgressReason::OtherServerName),
        ("two names", name_twice, EgressReason::OtherServerName),
        (
            "a hidden name",
            with_extension(&right, 0xfe0d, &[0; 8]),
            EgressReason::HiddenServerName,
        ),
        (
            "an older hidden name",
            with_extension(&right, 0xffce, &[0; 8]),
            EgressReason::HiddenServerName,
        ),
        (
            "plain HTTP",
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            EgressReason::NotTls,
        ),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), EgressReason::NotTls),
        ("SSL 2", vec![0x80, 0x2e, 1, 3, 1, 0, 0x15], EgressReason::NotTls),
        ("another record", vec![23, 3, 3, 0, 1, 0], EgressReason::NotTls),
        (
            "another message",
            vec![22, 3, 1, 0, 4, 2, 0, 0, 0],
            EgressReason::NotTls,
        ),
        ("an empty record", vec![22, 3, 1, 0, 0], EgressReason::NotTls),
        ("bytes behind the hello", behind, EgressReason::NotTls),
        (
            "half a hello",
            right[..right.len() / 2].to_vec(),
            EgressReason::NotTls,
        ),
        ("a hello without end", endless, EgressReason::LimitReached),
    ] {
        let (address, received) = raw_server().await;
        let house = House::new(Stage::with(address));
        let mut stream = connect(&house).await;
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut alert = Vec::new();
        let _ = stream.read_to_end(&mut alert).await;
        assert_eq!(alert, [21, 3, 1, 0, 2, 2, 49], "{what}");
        assert_eq!(house.reasons(), [reason], "{what}");
        assert_eq!(*received.lock().expect("not poisoned"), b"", "{what}");
    }
}

/// S-39: every byte of a right hello, changed to anything, either still names the host or does not pass.
#[tokio::test]
async fn a_changed_hello_never_passes_with_another_name() {
    let right = hello_to(NAME);
    let start = right
        .windows(NAME.len())
        .position(|window| window == NAME.as_bytes())
        .expect("the name in clear");
    for at in start.saturating_sub(9)..start + NAME.len() {
        let (address, received) = raw_server().await;
        let house = House::new(Stage::with(address));
        let mut changed = right.clone();
        changed[at] ^= 1;
        let mut stream = connect(&house).await;
        let _ = stream.write_all(&changed).await;
        let _ = stream.shutdown().await;
        let mut alert = Vec::new();
        let _ = stream.read_to_end(&mut alert).await;
        assert_eq!(house.denials().len(), 1, "byte {at}");
        assert_eq!(*received.lock().expect("not poisoned"), b"", "byte {at}");
    }
}

/// S-39: who opens a tunnel and does not speak is not waited for.
#[tokio::test]
async fn a_slow_hello_is_given_up() {
    let (address, received) = raw_server().await;
    let limits = Limits {
        head: Duration::from_millis(150),
        ..Limits::default()
    };
    let house = House::with(Stage::with(address), both_ways(), limits);
    let mut stream = connect(&house).await;
    stream.write_all(&hello_to(NAME)[..20]).await.expect("it listens");
    let mut alert = Vec::new();
    let _ = stream.read_to_end(&mut alert).await;
    assert_eq!(alert, [21, 3, 1, 0, 2, 2, 49]);
    assert_eq!(house.reasons(), [EgressReason::LimitReached]);
    assert_eq!(*received.lock().expect("not poisoned"), b"");
}

/// BEY-7: closing the door cuts a tunnel that is under way.
#[tokio::test]
async fn a_closed_door_cuts_its_tunnels() {
    let (address, _received) = raw_server().await;
    let house = House::new(Stage::with(address));
    let mut stream = connect(&house).await;
    stream.write_all(&hello_to(NAME)).await.expect("it listens");
    house.door.close().await;
    assert_eq!(listen(&mut stream).await, "");
}
