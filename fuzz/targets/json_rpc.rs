//! Whatever a client says after its greeting, the server ends when the client leaves, and every word of it is one JSON
//! message (TOOL-1).

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::role::Role;
use conductor_port::agent::{Misfit, ToolAnswer, ToolRequest, Tools};
use conductor_tools::{Lease, Offers, Server, door};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#,
    r#""clientInfo":{"name":"fuzz","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

/// Answers every call at once.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Tools for Nobody {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        Ok(ToolAnswer::Done {
            output: request.name().as_bytes().to_vec(),
        })
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        Ok(ToolAnswer::Refused { reason: call.reason })
    }

    async fn say(&self, _text: &str) {}
}

/// The input is what a client says, line by line.
pub(crate) fn check(input: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut write, there) = tokio::io::duplex(1 << 20);
        let (here, mut read) = tokio::io::duplex(1 << 20);
        let lease = Lease::grant().expect("a lease");
        let server = Server::new(Offers::to_role(Role::Implementer, Arc::new(Nobody)));
        let serving = door::over_pipes(server, &lease, there, here);
        let saying = async {
            // A server that has ended reads no more.
            let _ = write.write_all(GREETING.as_bytes()).await;
            let _ = write.write_all(input).await;
            let _ = write.write_all(b"\n").await;
            drop(write);
        };
        let hearing = async {
            let mut said = String::new();
            read.read_to_string(&mut said).await.expect("text");
            said
        };
        let (_ended, (), said) = tokio::join!(serving, saying, hearing);
        let mut lines = said.lines();
        let greeting = lines.next().expect("the greeting is answered");
        assert!(greeting.contains("\"conductor\""), "{greeting}");
        for line in lines {
            let message: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
    });
}
