//! The tools of an invocation as an agent meets them: the engine's own tool host, served over the Model Context Protocol on a
//! socket, to the holder of the invocation's own lease.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::Purpose;
use conductor_domain::phase::PhaseName;
use conductor_domain::role::Role;
use conductor_engine::{audit, chain, record};
use conductor_port::agent::{AgentEnd, Misfit, Task, ToolAnswer, ToolRequest, Tools};
use conductor_port::blobs::ToolLog as _;
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;
use conductor_tools::{Lease, Offers, Server, door};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// What a client asks of the tools, and where the answer goes.
struct Asked {
    what: What,
    reply: oneshot::Sender<Result<ToolAnswer, Fault>>,
}

enum What {
    Call(ToolRequest),
    Misfit(Misfit),
}

/// Tools at the other end of a wire. A server lives for as long as it likes; the tools that an agent is lent do not, so that
/// whoever was lent them answers for them.
struct Wire(mpsc::Sender<Asked>);

impl Wire {
    async fn ask(&self, what: What) -> Result<ToolAnswer, Fault> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.send(Asked { what, reply }).await;
        sent.map_err(|_gone| Fault::permanent("the invocation is over"))?;
        answer
            .await
            .map_err(|_gone| Fault::permanent("the invocation ended meanwhile"))?
    }
}

#[async_trait]
impl Tools for Wire {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        self.ask(What::Call(request)).await
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        self.ask(What::Misfit(call)).await
    }

    async fn say(&self, _text: &str) {}
}

/// A client of the protocol: one request on a connection of its own.
struct Client {
    socket: PathBuf,
    token: String,
}

impl Client {
    /// Asks, and returns the answer's status and body.
    async fn ask(&self, method: &str, params: Value) -> Result<(u16, Value)> {
        let stream = UnixStream::connect(&self.socket).await.context("connecting")?;
        self.ask_on(stream, method, params).await
    }

    async fn ask_on(&self, mut stream: UnixStream, method: &str, params: Value) -> Result<(u16, Value)> {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream
            .write_all((head + &body).as_bytes())
            .await
            .context("asking")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.context("listening")?;
        let status = answer.get(9..12).and_then(|code| code.parse().ok());
        let body = answer
            .split_once("\r\n\r\n")
            .map(|(_head, body)| serde_json::from_str(body).unwrap_or(Value::Null));
        Ok((
            status.with_context(|| format!("no answer: {answer}"))?,
            body.unwrap_or(Value::Null),
        ))
    }

    /// Calls a tool: what it said, or the protocol's own error where there is no such tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<String> {
        let (status, answer) = self
            .ask("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await?;
        ensure!(status == 200, "{tool}: {status} {answer}");
        if let Some(error) = answer["error"]["code"].as_i64() {
            return Ok(format!("error {error}"));
        }
        let text = answer["result"]["content"][0]["text"].as_str();
        Ok(text.with_context(|| format!("{tool}: {answer}"))?.to_owned())
    }
}

/// A tool, its arguments, and what its caller is to hear.
type Step = (&'static str, Value, &'static str);

/// What the protocol answers to a tool that is not offered.
const NOT_OFFERED: &str = "error -32602";

/// What an agent does: its own work, and one thing that is another role's.
fn steps(purpose: Purpose) -> Vec<Step> {
    let write = json!({ "path": "thing.txt", "content": "right" });
    let plan = json!({ "summary": "Make it", "approach": "Carefully.", "files": ["thing.txt"] });
    let review = json!({ "verdict": "approve", "summary": "Good." });
    let report = json!({ "passed": true, "interpretation": "All is well." });
    let read = ("view", json!({ "path": "README.md" }), "hello\n");
    match purpose {
        Purpose::Plan => vec![
            read,
            ("create_file", write, NOT_OFFERED),
            ("submit_plan", plan, "accepted"),
        ],
        Purpose::ReviewPlan | Purpose::ReviewImplementation => vec![
            read,
            ("submit_plan", plan, NOT_OFFERED),
            ("submit_review", review, "accepted"),
        ],
        Purpose::Implement => vec![
            ("create_file", write, "created"),
            ("view", json!({ "path": "thing.txt" }), "right"),
            ("submit_review", review, NOT_OFFERED),
        ],
        Purpose::InterpretTests => vec![
            read,
            ("bash", json!({ "command": "id" }), NOT_OFFERED),
            ("submit_test_report", report, "accepted"),
        ],
    }
}

/// The tools that one role is offered and not every other.
fn own(role: Role) -> &'static [&'static str] {
    match role {
        Role::Planner => &["submit_plan"],
        Role::Implementer => &["bash", "create_file", "git_commit", "str_replace"],
        Role::Reviewer => &["submit_review"],
        Role::Tester => &["submit_test_report"],
    }
}

/// One invocation, as its client saw it.
#[derive(Debug, Clone)]
struct Met {
    effect: EffectId,
    purpose: Purpose,
    token: String,
    said: Vec<String>,
}

/// Works through a client of the protocol alone.
async fn work(client: &Client, purpose: Purpose, earlier: Option<Met>) -> Result<Vec<String>> {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let (status, greeted) = client.ask("initialize", hello).await?;
    ensure!(
        status == 200 && greeted["result"]["serverInfo"]["name"] == "conductor",
        "{status} {greeted}"
    );
    // The token of an invocation before this one is worth nothing here.
    if let Some(Met { token, .. }) = earlier {
        let socket = client.socket.clone();
        let (status, answer) = Client { socket, token }.ask("tools/list", json!({})).await?;
        ensure!(status == 401, "an old token: {status} {answer}");
    }
    let (_status, listed) = client.ask("tools/list", json!({})).await?;
    let listed = listed["result"]["tools"].as_array().context("tools")?;
    let is_listed = |tool: &str| listed.iter().any(|known| known["name"] == tool);
    for role in Role::ALL {
        for tool in own(role) {
            ensure!(
                is_listed(tool) == (role == purpose.role()),
                "{purpose:?}: {tool} in {listed:#?}"
            );
        }
    }
    let mut said = Vec::new();
    for (tool, arguments, _expected) in steps(purpose) {
        said.push(client.call(tool, arguments).await?);
    }
    Ok(said)
}

/// Plays one invocation: serves its tools under a lease of their own, lets a client work, and ends the lease.
async fn play(task: &Task, tools: &dyn Tools, earlier: Option<Met>) -> Result<Met> {
    let purpose = task.invocation.purpose;
    let dir = tempfile::tempdir().context("a directory")?;
    let socket = dir.path().join("tools.sock");
    let lease = Lease::grant().context("a lease")?;
    let (wire, mut asked) = mpsc::channel(1);
    let server = Server::new(Offers::to_role(purpose.role(), Arc::new(Wire(wire))));
    let listener = UnixListener::bind(&socket).context("a socket")?;
    let serving = tokio::spawn(door::over_socket(server, lease.clone(), listener));
    let token = lease.token().to_owned();
    let client = Client { socket, token };

    let working = work(&client, purpose, earlier);
    tokio::pin!(working);
    let said = loop {
        let Asked { what, reply } = tokio::select! {
            said = &mut working => break said?,
            asked = asked.recv() => asked.context("the server is there")?,
        };
        let answer = match what {
            What::Call(request) => tools.call(request).await,
            What::Misfit(call) => tools.misfit(call).await,
        };
        let _hung_up = reply.send(answer);
    };

    // Whoever has a connection already gets no further with it than whoever comes anew.
    let held = UnixStream::connect(&client.socket).await.context("connecting")?;
    lease.end();
    let view = || json!({ "name": "view", "arguments": { "path": "README.md" } });
    for late in [
        client.ask_on(held, "tools/call", view()).await,
        client.ask("tools/call", view()).await,
    ] {
        ensure!(
            late.as_ref().map_or(true, |(status, _)| *status == 410),
            "served after its end: {late:?}"
        );
    }
    serving.await.context("no panic")?.context("served")?;
    ensure!(asked.recv().await.is_none(), "a late call reached the tools");
    Ok(Met {
        effect: task.effect.clone(),
        purpose,
        token: lease.token().to_owned(),
        said,
    })
}

/// TOOL-1, TOOL-4, RUN-8, S-44: every invocation of a run is served by a server of its own, to its own role and under its own
/// token; the run gets through by these calls alone. All of them, and what was tried in vain, stand in the invocation's log,
/// chained and anchored in the run's; none after the lease does.
#[tokio::test]
async fn each_invocation_is_served_by_its_own_host_under_its_own_lease() -> Result<()> {
    let met: Arc<Mutex<Vec<Result<Met, String>>>> = Arc::default();
    let kept = met.clone();
    let agent = FakeAgent::new(move |task, tools| {
        let kept = kept.clone();
        Box::pin(async move {
            let earlier = kept
                .lock()
                .expect("no panic")
                .iter()
                .flatten()
                .next_back()
                .cloned();
            let played = play(&task, tools, earlier)
                .await
                .map_err(|error| format!("{error:#}"));
            let is_bad = played.is_err();
            kept.lock().expect("no panic").push(played);
            if is_bad {
                return Err(Fault::permanent("the play went wrong"));
            }
            Ok(AgentEnd::Finished { tokens: 1 })
        })
    });
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    let stopped = |run: &conductor_domain::Run| run.gate().is_some() || run.is_held();
    rig.until(&run, stopped).await;
    told(&met)?;
    rig.approve(&run).await;
    rig.until(&run, |run| {
        run.phase.name() == PhaseName::AwaitingMerge || run.is_held()
    })
    .await;

    let met = told(&met)?;
    let purposes: Vec<Purpose> = met.iter().map(|met| met.purpose).collect();
    ensure!(
        purposes
            == [
                Purpose::Plan,
                Purpose::ReviewPlan,
                Purpose::Implement,
                Purpose::InterpretTests,
                Purpose::ReviewImplementation
            ],
        "{purposes:?}"
    );
    for met in &met {
        check_log(&rig, &run, met).await?;
    }
    let memory = rig.stage.memory.as_ref();
    let found = audit::verify(audit::Kept {
        views: memory,
        ledger: memory,
        tool_log: memory,
        blobs: memory,
    });
    let found = found.await.context("readable")?;
    ensure!(found.problems.is_empty(), "{:?}", found.problems);
    rig.end().await;
    Ok(())
}

/// What was met so far, or what went wrong with it.
fn told(met: &Mutex<Vec<Result<Met, String>>>) -> Result<Vec<Met>> {
    let met = met.lock().expect("no panic").clone();
    let met: Result<Vec<Met>, String> = met.into_iter().collect();
    met.map_err(anyhow::Error::msg)
}

/// The log holds exactly what the client called, as a chain whose length and head the run's own chain holds.
async fn check_log(rig: &Rig, run: &RunId, met: &Met) -> Result<()> {
    let log = rig.stage.memory.read(&met.effect).await.context("readable")?;
    let steps = steps(met.purpose);
    let expected: Vec<(String, &str)> = steps
        .iter()
        .map(|(tool, _arguments, said)| {
            let decision = if *said == NOT_OFFERED { "deny" } else { "allow" };
            ((*tool).to_owned(), decision)
        })
        .collect();
    let logged: Vec<(String, &str)> = log
        .iter()
        .map(|call| (call.tool.clone(), call.decision.as_str()))
        .collect();
    ensure!(logged == expected, "{:?}: {log:#?}", met.purpose);
    let heard: Vec<&str> = steps.iter().map(|(_tool, _arguments, said)| *said).collect();
    ensure!(met.said == heard, "{:?}: {:?}", met.purpose, met.said);

    let mut last = chain::tool_genesis(&met.effect);
    for call in &log {
        ensure!(chain::link_tool(&last, call) == call.hash, "{call:?}");
        last.clone_from(&call.hash);
    }
    let records = rig.records(run).await;
    let ended = records
        .iter()
        .filter(|record| record.kind == "invocation_ended")
        .find_map(|found| match record::decode(found) {
            Ok(Event::InvocationEnded { effect, tools, .. }) if effect == met.effect => Some(tools),
            Ok(_) | Err(_) => None,
        });
    let ended = ended.with_context(|| format!("{:?} never ended", met.purpose))?;
    ensure!(
        (ended.calls, ended.head.as_str()) == (log.len() as u64, last.as_str()),
        "{:?} is not anchored: {ended:?}",
        met.purpose
    );
    Ok(())
}
