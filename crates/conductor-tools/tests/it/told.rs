//! Tools that write down what they were asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_port::agent::{ToolAnswer, ToolRequest, Tools};

/// Answers every call, and remembers it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) asked: Mutex<Vec<ToolRequest>>,
}

impl Told {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn asked(&self) -> Vec<ToolRequest> {
        self.asked.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl Tools for Told {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        self.asked.lock().expect("no panic").push(request.clone());
        let ToolRequest::View { path } = &request else {
            return Ok(if matches!(request, ToolRequest::AskHuman { .. }) {
                ToolAnswer::Stop
            } else {
                let reason = format!("{} is refused here", request.name());
                ToolAnswer::Refused { reason }
            });
        };
        let output = match path.as_str() {
            "slow" => std::future::pending().await,
            "broken" => return Err(Fault::transient("the disk is on fire")),
            "huge" => vec![b'x'; 100 << 20],
            "binary" => vec![b'a', 0xff, b'b'],
            path => format!("content of {path}").into_bytes(),
        };
        Ok(ToolAnswer::Done { output })
    }

    async fn say(&self, _text: &str) {}
}
