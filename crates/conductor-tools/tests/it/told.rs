//! Tools that write down what they were asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_port::agent::{Misfit, ToolAnswer, ToolRequest, Tools};
use tokio::sync::Notify;

/// Answers every call, and remembers it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) asked: Mutex<Vec<ToolRequest>>,
    misfits: Mutex<Vec<Misfit>>,
    /// Fires when a call for `slow` has begun.
    pub(crate) is_under_way: Notify,
    /// Lets a call for `held` go on.
    pub(crate) go_on: Notify,
    /// Fires when a call for `held` was done.
    pub(crate) is_done: Notify,
}

impl Told {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What could not be called, and what was wrong with it.
    pub(crate) fn misfits(&self) -> Vec<Misfit> {
        self.misfits.lock().expect("no panic").clone()
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
            "slow" => {
                self.is_under_way.notify_one();
                std::future::pending().await
            }
            "held" => {
                self.go_on.notified().await;
                self.is_done.notify_one();
                b"held".to_vec()
            }
            "broken" => return Err(Fault::transient("the disk is on fire")),
            "huge" => vec![b'x'; 100 << 20],
            "binary" => vec![b'a', 0xff, b'b'],
            path => format!("content of {path}").into_bytes(),
        };
        Ok(ToolAnswer::Done { output })
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        self.misfits.lock().expect("no panic").push(call.clone());
        Ok(ToolAnswer::Refused { reason: call.reason })
    }

    async fn say(&self, _text: &str) {}
}
