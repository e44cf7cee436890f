//! A real client: curl, through a forwarder from loopback to the socket, as the guest has one.

use std::process::Stdio;

use conductor_domain::egress::EgressReason;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::process::Command;

use crate::kit::{House, NAME, OK, Server, Stage, TOKEN};
use crate::tunnels::{Identity, tls_server};

/// Carries connections from a loopback port to the door's socket.
async fn forwarder(house: &House) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (port, socket) = (listener.local_addr().expect("an address").port(), house.socket());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut door = UnixStream::connect(&socket).await.expect("a door");
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut door).await });
        }
    });
    port
}

/// Runs curl through the proxy; gives its exit code and what it printed.
async fn curl(port: u16, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("curl")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(["--proxy", &format!("http://call-9:{TOKEN}@127.0.0.1:{port}")])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("curl must be installed: cargo xtask setup curl");
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&both).into_owned())
}

/// EXEC-3, S-38, S-39.
#[tokio::test]
async fn curl_gets_through_to_a_granted_host_both_ways() {
    let identity = Identity::new();
    let house = House::new(Stage::with(tls_server(&identity).await));
    let certificate = house.home.path().join("certificate.pem");
    std::fs::write(&certificate, &identity.pem).expect("a file");
    let port = forwarder(&house).await;
    let trusted = certificate.to_str().expect("a plain path");
    let tunnel = curl(port, &["--cacert", trusted, &format!("https://{NAME}/")]).await;
    assert_eq!(tunnel, (Some(0), "secret".to_owned()));

    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    let port = forwarder(&house).await;
    let url = format!("http://{NAME}/");
    let plain = curl(port, &["--data", "x=1", "--header", "Expect: 100-continue", &url]).await;
    assert_eq!(plain, (Some(0), "ok".to_owned()));
    assert!(
        server.received()[0].ends_with("\r\n\r\nx=1"),
        "{:?}",
        server.received()
    );
}

/// EXEC-3, BEY-6: a denied host is told with the command that asked.
#[tokio::test]
async fn curl_is_told_why_it_may_not() {
    let house = House::new(Stage::default());
    let port = forwarder(&house).await;
    let (code, words) = curl(port, &["http://evil.example/"]).await;
    assert_eq!(code, Some(0));
    assert!(words.contains("no policy grants this host"), "{words}");
    let (code, words) = curl(port, &["https://evil.example/"]).await;
    assert_eq!(code, Some(56), "{words}");
    let told: Vec<_> = house
        .denials()
        .into_iter()
        .map(|denial| (denial.host, denial.port, denial.reason, denial.command))
        .collect();
    let by = Some("call-9".to_owned());
    assert_eq!(
        told,
        [
            (
                "evil.example".to_owned(),
                80,
                EgressReason::HostNotGranted,
                by.clone()
            ),
            ("evil.example".to_owned(), 443, EgressReason::HostNotGranted, by),
        ]
    );
}

/// S-39: curl that is told to greet another host than it asked the proxy for does not get there.
#[tokio::test]
async fn curl_cannot_greet_another_host_in_the_tunnel() {
    let identity = Identity::new();
    let house = House::new(Stage::with(tls_server(&identity).await));
    let port = forwarder(&house).await;
    let to = format!("evil.example:443:{NAME}:443");
    let (code, words) = curl(
        port,
        &["--insecure", "--connect-to", &to, "https://evil.example/"],
    )
    .await;
    assert_eq!(code, Some(35), "{words}");
    assert_eq!(house.reasons(), [EgressReason::OtherServerName]);
}
