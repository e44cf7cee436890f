//! Answers a client's messages: what is there, and what came of a call. Stateless but for what the shelf keeps and for who
//! has a seat.
//!
//! This module does not know which tools there are, nor what carries the messages.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, Implementation, InitializeResult, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ServerCapabilities, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::door::MAX_MESSAGE;
use crate::seats::{CALLS, Seat, Seats};

/// Tools that can be listed and called.
#[async_trait]
pub trait Shelf: Send + Sync + 'static {
    /// Lists them.
    fn tools(&self) -> Vec<Tool>;

    /// Calls one; `None` when there is none of that name.
    async fn call(&self, name: &str, arguments: JsonObject, progress: &Progress) -> Option<CallToolResult>;

    /// Takes note of a call whose parameters could not be read; `None` when that is done.
    async fn misfit(&self, parameters: Value, reason: &str) -> Option<CallToolResult>;
}

/// Tells the client how far a call is, if it asked for that.
pub struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

impl Progress {
    /// Tells that `done` of `all` is done. A client that does not listen is no reason to stop.
    pub async fn tell(&self, done: u32, all: u32) {
        if let Some((peer, token)) = &self.0 {
            let told = ProgressNotificationParam::new(token.clone(), done.into()).with_total(all.into());
            let _ = peer.notify_progress(told).await;
        }
    }
}

/// The method that calls a tool.
pub(crate) const CALL: &str = "tools/call";

/// Stands for a call of which nobody kept more than that it was one: it was longer than any message may be. A client that
/// says so itself has told on itself.
pub(crate) const CALL_TOO_LONG: &str = "tools/call, too long";

/// Stands for a call of which nobody could read more than that it was one.
pub(crate) const CALL_NO_JSON: &str = "tools/call, no JSON";

const NO_JSON: &str = "the parameters cannot be read as JSON: text must be UTF-8 without halves of a surrogate pair, \
    numbers must fit into 64 bits, and nothing may be nested deeper than 100";

/// Serves a shelf.
pub struct Server<S> {
    shelf: Arc<S>,
    seats: Arc<Seats>,
}

impl<S> Clone for Server<S> {
    fn clone(&self) -> Self {
        Self {
            shelf: Arc::clone(&self.shelf),
            seats: Arc::clone(&self.seats),
        }
    }
}

impl<S> std::fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Server(…)")
    }
}

impl<S: Shelf> Server<S> {
    /// Serves it; clones serve the same, and share how much may be under way.
    pub fn new(shelf: S) -> Self {
        Self {
            shelf: Arc::new(shelf),
            seats: Arc::default(),
        }
    }

    /// Takes note of what a client sent and nobody could read: it may have been a call, and every call is logged (TOOL-4).
    /// It waits for no seat, since whoever sent it may be gone by then.
    pub(crate) async fn note(&self, parameters: Value, reason: &str) -> Option<CallToolResult> {
        self.note_from(self.seats.at_once(), parameters, reason).await
    }

    async fn note_from(
        &self,
        seat: Option<Seat<'_>>,
        parameters: Value,
        reason: &str,
    ) -> Option<CallToolResult> {
        if seat.is_none() {
            drop(parameters);
            return Some(self.refuse().await);
        }
        self.shelf.misfit(parameters, reason).await
    }

    /// Refuses a call that has no seat; it is logged all the same (TOOL-4), in one line with those that were refused with it.
    async fn refuse(&self) -> CallToolResult {
        let Some(line) = self.seats.refuse().await else {
            return busy();
        };
        let refused = line.refused;
        let reason = format!(
            "busy: {CALLS} calls were under way already; refused, or taken back while they waited: {refused}"
        );
        let failed = self.shelf.misfit(Value::Null, &reason).await;
        if failed.is_none() {
            line.written();
        }
        failed.unwrap_or_else(busy)
    }
}

/// Says that a message is longer than any may be.
pub(crate) fn too_long() -> String {
    format!("a message has at most {MAX_MESSAGE} bytes, and this one has more")
}

fn busy() -> CallToolResult {
    let busy =
        format!("busy: {CALLS} calls are under way already and others wait; wait for one and try again");
    CallToolResult::error(vec![ContentBlock::text(busy)])
}

/// Tells why nobody could read the parameters of a call; they may be of any length, and are not repeated.
fn flaw(parameters: &Value) -> &'static str {
    let arguments = &parameters["arguments"];
    if !parameters["name"].is_string() {
        "`name` must be there and be a text"
    } else if !arguments.is_object() && !arguments.is_null() {
        "`arguments` must be an object, not a text, a list or a number"
    } else {
        "a member is there twice, or is of the wrong type"
    }
}

impl<S: Shelf> ServerHandler for Server<S> {
    fn get_info(&self) -> InitializeResult {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("conductor", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shelf.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(_seat) = self.seats.wait(&context.ct).await else {
            // Its arguments may be long, and the log may take its time.
            drop(request);
            return Ok(self.refuse().await.into());
        };
        let token = context.meta.get_progress_token();
        let progress = Progress(token.map(|token| (context.peer.clone(), token)));
        let arguments = request.arguments.unwrap_or_default();
        // A call that its client took back from now on is done to its end all the same: what it began may have been done
        // already, and every call is logged (TOOL-4). Its answer is dropped by whoever carries the messages.
        let answer = self.shelf.call(&request.name, arguments, &progress).await;
        // A name that nobody gave may be of any length, and is not repeated.
        let unknown = || ErrorData::invalid_params("there is no tool of this name", None);
        answer.map(CallToolResponse::from).ok_or_else(unknown)
    }

    /// Answers what the SDK has no request for; a call with parameters that are none comes here, and is a call all the same
    /// (TOOL-4).
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let parameters = request.params.unwrap_or_default();
        let (code, reason) = match request.method.as_str() {
            CALL => (ErrorCode::INVALID_PARAMS, flaw(&parameters).to_owned()),
            CALL_TOO_LONG => (ErrorCode::INVALID_REQUEST, too_long()),
            CALL_NO_JSON => (ErrorCode::INVALID_PARAMS, NO_JSON.to_owned()),
            _ => {
                let unknown = "there is no method of this name";
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, unknown, None));
            }
        };
        let seat = self.seats.wait(&context.ct).await;
        let answer = self.note_from(seat, parameters, &reason).await;
        let answer = answer.ok_or_else(|| ErrorData::new(code, reason, None))?;
        let answer = serde_json::to_value(answer);
        answer
            .map(CustomResult)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}
