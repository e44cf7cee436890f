//! Carries messages over two pipes, one a line: answers what is no message, and reads on only while there is room.
//!
//! A client that does not read its answers is not read either: what it asked and what it was answered waits in the pipes,
//! not in memory. A call that is refused here is logged all the same. This module does not know what is asked, nor what is
//! answered to it.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, ErrorCode, JsonRpcMessage,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

use crate::door::MAX_MESSAGE;
use crate::seats::MAX_UNDER_WAY;
use crate::server::{CALL, CALL_NO_JSON, CALL_TOO_LONG, Server, Shelf, too_long};

/// The longest id of a request; it is repeated in the answer.
const MAX_ID: usize = 256;

/// How much is kept of what stands at the top of a message that is too long.
const MAX_OUTLINE: usize = 4096;

/// How many bytes requests without a written answer, and their answers, may have for more to be read.
const MAX_HELD: usize = 8 * 1024 * 1024;

/// Stands before the first line of clients that write for editors.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

type Writing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Two pipes; waiting for a message can be given up at any time, and nothing of it is lost.
pub(crate) struct Pipes<R, W, S> {
    read: BufReader<R>,
    line: Line,
    /// The answer to what was no message; nothing more is read before it is written.
    reply: Option<Writing>,
    write: Arc<tokio::sync::Mutex<W>>,
    under_way: Arc<UnderWay>,
    /// Takes note of the calls that are refused here.
    server: Server<S>,
}

impl<R, W, S> Pipes<R, W, S>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Shelf,
{
    pub(crate) fn new(read: R, write: W, server: Server<S>) -> Self {
        Self {
            read: BufReader::new(read),
            line: Line::default(),
            reply: None,
            write: Arc::new(tokio::sync::Mutex::new(write)),
            under_way: Arc::default(),
            server,
        }
    }

    /// Reads to the end of a line; the last one needs none.
    async fn line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                let last = std::mem::take(&mut self.line);
                return Ok((!last.is_empty()).then_some(last));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            self.line.extend(&available[..end.unwrap_or(available.len())]);
            let taken = end.map_or(available.len(), |end| end + 1);
            self.read.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }

    fn write(&self, message: &impl Serialize) -> Writing {
        let write = Arc::clone(&self.write);
        let line = serde_json::to_vec(message).map(|mut line| {
            line.push(b'\n');
            let owed = self.under_way.owe(line.len());
            (line, owed)
        });
        Box::pin(async move {
            let (line, _owed) = line?;
            let mut write = write.lock().await;
            write.write_all(&line).await?;
            write.flush().await
        })
    }

    /// Answers what is refused, and logs it first where it is a call (TOOL-4).
    fn refuse(&self, mut wrong: Wrong) -> Writing {
        let call = wrong.call.take();
        let why = wrong.why.clone();
        let answering = self.write(&wrong.answer());
        let server = self.server.clone();
        Box::pin(async move {
            if let Some(parameters) = call {
                // Whether the log takes it or not, the call is refused.
                let _noted = server.note(*parameters, &why).await;
            }
            answering.await
        })
    }
}

impl<R, W, S> Transport<RoleServer> for Pipes<R, W, S>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Shelf,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.under_way.forget(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.under_way.forget(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        self.write(&message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                let written = reply.await;
                self.reply = None;
                written.ok()?;
            }
            self.under_way.room().await;
            let line = match self.line().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::error!(%error, "cannot read from a client of the tools");
                    return None;
                }
            };
            let taken = match line.read() {
                Read::Message(message) => self.under_way.take(*message, line.len()),
                Read::OneWay => continue,
                Read::NoMessage(wrong) => Err(wrong),
            };
            match taken {
                Ok(message) => return Some(message),
                Err(wrong) => self.reply = Some(self.refuse(wrong)),
            }
        }
    }

    /// Does nothing: every message is out when its sending is over, and the pipes close with their last holder.
    async fn close(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// A line, as far as it was read.
#[derive(Debug)]
enum Line {
    Whole(Vec<u8>),
    TooLong(Outline),
}

impl Default for Line {
    fn default() -> Self {
        Self::Whole(vec![])
    }
}

/// What a line says.
enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing, or something that is never answered and that nobody here reads.
    OneWay,
    NoMessage(Wrong),
}

impl Line {
    fn is_empty(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::TooLong(_) => false,
        }
    }

    /// Returns how much of it is held.
    fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::TooLong(outline) => outline.kept.len(),
        }
    }

    fn extend(&mut self, more: &[u8]) {
        match self {
            Self::Whole(bytes) if bytes.len() + more.len() <= MAX_MESSAGE => bytes.extend_from_slice(more),
            Self::Whole(bytes) => {
                let mut outline = Outline::default();
                outline.extend(bytes);
                outline.extend(more);
                *self = Self::TooLong(outline);
            }
            Self::TooLong(outline) => outline.extend(more),
        }
    }

    fn read(&self) -> Read {
        let bytes = match self {
            Self::Whole(bytes) => bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes),
            Self::TooLong(outline) => {
                let top = outline.top();
                return unreadable_call(&top, CALL_TOO_LONG, None)
                    .unwrap_or_else(|| no_message(&top, too_long(), None));
            }
        };
        if bytes.trim_ascii().is_empty() {
            return Read::OneWay;
        }
        if let Ok(message) = serde_json::from_slice(bytes) {
            return Read::Message(Box::new(message));
        }
        match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => {
                let parameters = || value.get("params").cloned();
                let why = "this is no request of JSON-RPC 2.0".to_owned();
                unreadable_call(&value, CALL, parameters())
                    .unwrap_or_else(|| no_message(&value, why, parameters()))
            }
            Err(error) => {
                let mut outline = Outline::default();
                outline.extend(bytes);
                unreadable_call(&outline.top(), CALL_NO_JSON, None).unwrap_or_else(|| {
                    Read::NoMessage(Wrong {
                        id: None,
                        code: ErrorCode::PARSE_ERROR,
                        why: format!("this is no JSON: {error}"),
                        call: None,
                    })
                })
            }
        }
    }
}

/// Finds a call of a tool that is such that the SDK takes it for no message: it is handed on as `method`, because every call is
/// logged (TOOL-4).
fn unreadable_call(value: &Value, method: &str, parameters: Option<Value>) -> Option<Read> {
    let is_call = value["jsonrpc"] == "2.0" && value["method"] == CALL;
    let id = is_call
        .then(|| RequestId::deserialize(&value["id"]).ok())
        .flatten()?;
    let call = CustomRequest::new(method, parameters);
    let call = ClientJsonRpcMessage::request(ClientRequest::CustomRequest(call), id);
    Some(Read::Message(Box::new(call)))
}

/// Refuses what is no message, unless it is something that must not be answered: a notification, or an answer itself. What would
/// have been a call is logged with these parameters.
fn no_message(value: &Value, why: String, parameters: Option<Value>) -> Read {
    let has = |member| value.get(member).is_some();
    let is_notification = value.get("method").is_some_and(Value::is_string) && !has("id");
    let is_answer = !has("method") && (has("result") || has("error"));
    if is_notification || is_answer {
        return Read::OneWay;
    }
    let id = value.get("id");
    Read::NoMessage(Wrong {
        id: id.and_then(|id| RequestId::deserialize(id).ok()),
        code: ErrorCode::INVALID_REQUEST,
        why,
        call: (value["method"] == CALL).then(|| Box::new(parameters.unwrap_or_default())),
    })
}

/// Returns the parameters of a request that is a call of a tool.
fn called(request: ClientRequest) -> Option<Value> {
    if let ClientRequest::CallToolRequest(call) = request {
        return Some(serde_json::to_value(call.params).unwrap_or_default());
    }
    if let ClientRequest::CustomRequest(call) = request
        && [CALL, CALL_TOO_LONG, CALL_NO_JSON].contains(&call.method.as_str())
    {
        return Some(call.params.unwrap_or_default());
    }
    None
}

/// What stands at the top of an object, taken down while all of it passes by: an id may stand at its end.
#[derive(Debug, Default)]
struct Outline {
    kept: Vec<u8>,
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl Outline {
    fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let was_at = self.depth;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' | b'[' if !self.is_text => self.depth += 1,
                b'}' | b']' if !self.is_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            // Of what stands further below only the brackets around it are kept.
            if was_at.min(self.depth) <= 1 && self.kept.len() < MAX_OUTLINE {
                self.kept.push(byte);
            }
        }
    }

    /// Reads what was taken down; null where that is no JSON either.
    fn top(&self) -> Value {
        serde_json::from_slice(&self.kept).unwrap_or(Value::Null)
    }
}

/// Why a line is refused, and whom to tell.
struct Wrong {
    id: Option<RequestId>,
    code: ErrorCode,
    why: String,
    /// The parameters, where it is a call that could be read.
    call: Option<Box<Value>>,
}

impl Wrong {
    /// The answer has an id always, as JSON-RPC has it: null where nobody can tell which.
    fn answer(self) -> Value {
        let id = self.id.filter(|id| !is_too_long(id));
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": self.code, "message": self.why } })
    }
}

fn is_too_long(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => false,
        RequestId::String(text) => text.len() > MAX_ID,
    }
}

/// What was read and is not yet answered, and what is answered and not yet written.
#[derive(Debug, Default)]
struct UnderWay {
    account: Mutex<Account>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Account {
    /// The requests, with their lengths.
    unanswered: HashMap<RequestId, usize>,
    unwritten: usize,
    /// The bytes of both.
    held: usize,
}

impl UnderWay {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more.
    async fn room(&self) {
        let is_full = || {
            let account = self.account();
            account.unanswered.len() + account.unwritten >= MAX_UNDER_WAY || account.held >= MAX_HELD
        };
        while is_full() {
            self.changed.notified().await;
        }
    }

    /// Takes a message in; one that is taken back will not be answered.
    fn take(&self, message: ClientJsonRpcMessage, length: usize) -> Result<ClientJsonRpcMessage, Wrong> {
        match message {
            JsonRpcMessage::Request(request) => {
                return match self.expect(&request.id, length) {
                    Ok(()) => Ok(JsonRpcMessage::Request(request)),
                    // Its id would be taken for another's, or is too long to be repeated.
                    Err(why) => Err(Wrong {
                        id: None,
                        code: ErrorCode::INVALID_REQUEST,
                        why,
                        call: called(request.request).map(Box::new),
                    }),
                };
            }
            JsonRpcMessage::Notification(ref told) => {
                if let ClientNotification::CancelledNotification(back) = &told.notification
                    && let Some(id) = &back.params.request_id
                {
                    self.forget(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    /// Counts a request until it is answered; tells why it cannot be.
    fn expect(&self, id: &RequestId, length: usize) -> Result<(), String> {
        if is_too_long(id) {
            return Err(format!("an id has at most {MAX_ID} bytes"));
        }
        let mut account = self.account();
        // Nobody could tell their answers apart, and only one would be counted.
        if account.unanswered.contains_key(id) {
            return Err("a request of the same id waits for its answer".to_owned());
        }
        account.unanswered.insert(id.clone(), length);
        account.held += length;
        Ok(())
    }

    fn forget(&self, id: &RequestId) {
        let mut account = self.account();
        if let Some(length) = account.unanswered.remove(id) {
            account.held -= length;
        }
        self.changed.notify_one();
    }

    fn owe(self: &Arc<Self>, length: usize) -> Owed {
        let mut account = self.account();
        account.unwritten += 1;
        account.held += length;
        Owed {
            under_way: Arc::clone(self),
            length,
        }
    }
}

/// A message that is not yet written; it is over when this is dropped.
struct Owed {
    under_way: Arc<UnderWay>,
    length: usize,
}

impl Drop for Owed {
    fn drop(&mut self) {
        let mut account = self.under_way.account();
        account.unwritten -= 1;
        account.held -= self.length;
        drop(account);
        self.under_way.changed.notify_one();
    }
}
