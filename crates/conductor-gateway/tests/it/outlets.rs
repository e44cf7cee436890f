//! The engine's port over the proxy: what a sandbox is given, what it opens, and whose command it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conductor_contract::egress::Sockets;
use conductor_domain::egress::Grant;
use conductor_domain::id::{EffectId, RunId};
use conductor_gateway::door::Doors;
use conductor_gateway::egress::{Egress, Limits, Outlets, PORT};
use conductor_port::egress::{Egress as _, Outlet, OutletSpec};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use crate::kit::{Heard, NAME, OK, Server, Stage, listen, showing};

struct Place {
    outlets: Outlets,
    heard: Arc<Heard>,
    home: tempfile::TempDir,
}

fn place(stage: Stage, always: &[&str]) -> Place {
    let (heard, home) = (
        Arc::new(Heard::default()),
        tempfile::tempdir().expect("a directory"),
    );
    let doors = Doors::below(&home.path().join("doors")).expect("a parent");
    let egress = Egress::new(Arc::new(stage), Arc::clone(&heard) as _, Limits::default());
    let always = always
        .iter()
        .map(|text| Grant::parse(text).expect("a grant"))
        .collect();
    let drawn = AtomicU64::new(0);
    let mint = move || format!("token-{}", drawn.fetch_add(1, Ordering::Relaxed)).into();
    Place {
        outlets: Outlets::new(egress, doors, always, Arc::new(mint)),
        heard,
        home,
    }
}

async fn open(place: &Place, effect: &str, grants: &[&str]) -> Box<dyn Outlet> {
    let spec = OutletSpec {
        effect: EffectId::parse(effect).expect("an effect"),
        run: RunId::parse("r1").expect("a run"),
        grants: grants
            .iter()
            .map(|text| Grant::parse(text).expect("a grant"))
            .collect(),
    };
    place.outlets.open(spec).await.expect("an outlet")
}

/// What a client makes of its proxy variable: user and password, as curl would send them.
fn credentials(outlet: &dyn Outlet, command: &str) -> String {
    let environment = outlet.environment(command);
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).expect(wanted)
    };
    let proxy = value("HTTP_PROXY");
    for same in ["http_proxy", "HTTPS_PROXY", "https_proxy"] {
        assert_eq!(value(same), proxy);
    }
    for inside in ["NO_PROXY", "no_proxy"] {
        assert_eq!(value(inside), "localhost,127.0.0.1,::1");
    }
    let authority = proxy.strip_prefix("http://").expect("a proxy over HTTP");
    let (credentials, place) = authority.rsplit_once('@').expect("credentials");
    assert_eq!(place, format!("127.0.0.1:{PORT}"));
    credentials.to_owned()
}

async fn ask(outlet: &dyn Outlet, credentials: &str, host: &str) -> String {
    let (user, token) = credentials.split_once(':').expect("user and password");
    let field = showing(token).replace(&showing_user("call-1", token), &showing_user(user, token));
    let mut stream = UnixStream::connect(outlet.way().socket).await.expect("a socket");
    let request = format!("GET http://{host}/ HTTP/1.1\r\n{field}\r\n");
    stream.write_all(request.as_bytes()).await.expect("said");
    stream.shutdown().await.expect("said all");
    listen(&mut stream).await
}

fn showing_user(user: &str, token: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("{user}:{token}"))
}

/// EXEC-3, S-32: what the port promises.
#[tokio::test]
async fn the_contract_holds() {
    let place = place(Stage::default(), &[]);
    conductor_contract::egress::holds(&place.outlets, Sockets::Real).await;
    let left = std::fs::read_dir(place.home.path().join("doors")).expect("the parent");
    assert_eq!(left.count(), 0);
}

/// EXEC-3: settings and the project's own grants count together; what neither names is denied, whoever asks.
#[tokio::test]
async fn what_is_granted_to_all_and_to_the_project_is_let_out() {
    let server = Server::answering(OK).await;
    let mut stage = Stage::with(server.address);
    let address = stage.names[NAME].clone();
    stage.names.insert("own.example".into(), address);
    let place = place(stage, &["http://files.example"]);
    let outlet = open(&place, "r1.7.0", &["http://own.example"]).await;
    let shown = credentials(outlet.as_ref(), "make");
    for (host, expected) in [
        (NAME, "HTTP/1.1 200"),
        ("own.example", "HTTP/1.1 200"),
        ("else.example", "403"),
    ] {
        let answer = ask(outlet.as_ref(), &shown, host).await;
        assert!(answer.contains(expected), "{host}: {answer}");
    }
    let bare = open(&place, "r1.8.0", &[]).await;
    let shown = credentials(bare.as_ref(), "make");
    let answer = ask(bare.as_ref(), &shown, "own.example").await;
    assert!(
        answer.contains("403"),
        "another sandbox's grant is its own: {answer}"
    );
}

/// BEY-6: a denial names the command that asked; one that lies about its name is at most another of the same sandbox, and
/// another sandbox's credentials open nothing.
#[tokio::test]
async fn a_denial_names_the_command_that_asked() {
    let place = place(Stage::default(), &[]);
    let outlet = open(&place, "r1.7.0", &[]).await;
    let first = credentials(outlet.as_ref(), "curl http://one.example");
    let second = credentials(outlet.as_ref(), &"x".repeat(1000));
    let token = second.split_once(':').expect("a token").1.to_owned();
    ask(outlet.as_ref(), &first, "one.example").await;
    ask(outlet.as_ref(), &second, "two.example").await;
    ask(outlet.as_ref(), &format!("command-99:{token}"), "three.example").await;
    let other = open(&place, "r1.8.0", &[]).await;
    let foreign = credentials(other.as_ref(), "curl");
    let answer = ask(outlet.as_ref(), &foreign, "one.example").await;
    assert!(answer.starts_with("HTTP/1.1 407"), "{answer}");
    let commands: Vec<Option<String>> = {
        let heard = place.heard.0.lock().expect("not poisoned");
        heard.iter().map(|denial| denial.command.clone()).collect()
    };
    assert_eq!(
        commands,
        [
            Some("curl http://one.example".to_owned()),
            Some("x".repeat(200)),
            Some("command-99".to_owned()),
            None,
        ]
    );
}

/// S-32: sockets that a killed server left are removed at the next start, and nothing else that is there.
#[test]
fn what_a_killed_server_left_of_its_doors_is_removed() {
    let home = tempfile::tempdir().expect("a directory");
    let parent = home.path().join("doors");
    let doors = Doors::below(&parent).expect("a parent");
    let left = parent.join("r1.7.0");
    std::fs::create_dir(&left).expect("made");
    drop(std::os::unix::net::UnixListener::bind(left.join("egress")).expect("bound"));
    let foreign = parent.join("foreign");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("file"), "kept").expect("written");
    doors.swept().expect("swept");
    assert!(!left.exists());
    assert!(foreign.join("file").exists());
}
