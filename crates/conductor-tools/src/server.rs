//! Answers a client's messages: what is there, and what came of a call. Stateless but for what the shelf keeps and for how
//! many calls are under way.
//!
//! This module does not know which tools there are, nor what carries the messages.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InitializeResult,
    JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ServerCapabilities, Tool,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Semaphore;

/// Tools that can be listed and called.
#[async_trait]
pub trait Shelf: Send + Sync + 'static {
    /// Lists them.
    fn tools(&self) -> Vec<Tool>;

    /// Calls one; `None` when there is none of that name.
    async fn call(&self, name: &str, arguments: JsonObject, progress: &Progress) -> Option<CallToolResult>;
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

/// How many calls may be under way at once; an agent that waits for its answers has far fewer.
const CALLS: usize = 16;

/// Serves a shelf.
pub struct Server<S> {
    shelf: Arc<S>,
    /// A call has one until it is done, also where nobody waits for its answer any more.
    seats: Arc<Semaphore>,
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
            seats: Arc::new(Semaphore::new(CALLS)),
        }
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
        // Not a call yet: nothing is done, so nothing is logged, or the log would take the flood instead.
        let Ok(_seat) = self.seats.try_acquire() else {
            let busy = format!("busy: {CALLS} calls are under way already; wait for one and try again");
            return Ok(CallToolResult::error(vec![ContentBlock::text(busy)]).into());
        };
        let token = context.meta.get_progress_token();
        let progress = Progress(token.map(|token| (context.peer.clone(), token)));
        let arguments = request.arguments.unwrap_or_default();
        // A call that its client took back is done to its end all the same: what it began may have been done already, and
        // every call is logged (TOOL-4). The answer to such a call is dropped by whoever carries the messages.
        let answer = self.shelf.call(&request.name, arguments, &progress).await;
        // A name that nobody gave may be of any length, and is not repeated.
        let unknown = || ErrorData::invalid_params("there is no tool of this name", None);
        answer.map(CallToolResponse::from).ok_or_else(unknown)
    }
}
