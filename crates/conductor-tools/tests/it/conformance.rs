//! The public conformance suite of the protocol, run as published.

use std::path::Path;
use std::process::Stdio;

use conductor_tools::{Lease, Server, door};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::fixtures::Fixtures;

/// Every scenario for a server that has tools and nothing else: no prompts, resources, sampling, elicitation or logging.
const SCENARIOS: [&str; 12] = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "dns-rebinding-protection",
];

/// TOOL-1.
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_of_a_tools_server_passes() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let node = tools.join("node22/bin/node");
    let suite = tools.join("mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    assert!(
        node.exists() && suite.exists(),
        "the suite is not installed: cargo xtask setup mcp"
    );
    let lease = Lease::grant().expect("a lease");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // The suite knows no tokens; whatever it sends gets ours.
    let router = door::loopback(Server::new(Fixtures), lease.clone(), port);
    let shown = format!("Bearer {}", lease.token()).parse::<axum::http::HeaderValue>();
    let shown = shown.expect("a header");
    let router = router.layer(axum::middleware::map_request(
        move |mut request: axum::extract::Request| {
            let shown = shown.clone();
            async move {
                request.headers_mut().insert("authorization", shown);
                request
            }
        },
    ));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let dir = tempfile::tempdir().expect("a directory");
    let mut failed = vec![];
    for scenario in SCENARIOS {
        #[allow(clippy::disallowed_methods, reason = "the suite is a program")]
        let output = Command::new(&node)
            .arg(&suite)
            .args(["server", "--url", &format!("http://localhost:{port}/mcp")])
            .args(["--scenario", scenario])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .await
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // A scenario that checked nothing has shown nothing.
        if !output.status.success() || !said.contains("Passed: ") || said.contains("Passed: 0/") {
            failed.push(format!(
                "{scenario}: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
