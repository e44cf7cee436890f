//! What a call may not be longer than nor hold, and how much of it is kept: in a run, and without one.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::role::Role;
use conductor_domain::spec::ExecutorName;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_engine::redact::KnownForms;
use conductor_engine::{Alone, Executors, Ports, Without};
use conductor_policy::authority::Authority;
use conductor_port::Fault;
use conductor_port::agent::{ToolAnswer, ToolRequest, Tools as _};
use conductor_port::blobs::{CallPage, ToolCall, ToolLog};
use conductor_port::executor::{
    Command, CommandResult, Entry, Executor, FileRefusal, Found, Match, Pattern, Sandbox, SandboxSpec,
};
use conductor_port::ledger::Settlement;
use conductor_testkit::rig::Rig;

use crate::tools::{calls, tool_log};

/// A sandbox that refuses everything, in more words than anybody keeps.
#[derive(Debug)]
struct Wordy;

fn words() -> FileRefusal {
    FileRefusal::Other("ä".repeat(50_000))
}

#[async_trait]
impl Executor for Wordy {
    async fn open(&self, _spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        Ok(Box::new(Self))
    }

    async fn reap(&self, _effect: &EffectId) -> Result<(), Fault> {
        Ok(())
    }
}

#[async_trait]
impl Sandbox for Wordy {
    async fn bash(&self, _command: Command) -> Result<CommandResult, Fault> {
        Ok(CommandResult {
            ending: Ending::NotRun {
                reason: words().to_string(),
            },
            output: vec![],
            truncated: false,
            time: Millis(7),
        })
    }

    async fn view(&self, _path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        Ok(Err(words()))
    }

    async fn create_file(&self, _path: &str, _content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        Ok(Err(words()))
    }

    async fn str_replace(&self, _: &str, _old: &str, _new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        Ok(Err(words()))
    }

    async fn list(&self, _path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        Ok(Err(words()))
    }

    async fn search(&self, _: &str, _: &Pattern) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        Ok(Err(words()))
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        Ok(())
    }
}

/// What an agent was answered, and what stands in the log.
type Told = (Vec<ToolAnswer>, Vec<ToolCall>);

/// Makes these calls as the planner of a run.
async fn in_a_run(requests: Vec<ToolRequest>) -> Told {
    let (agent, answers) = calls(requests);
    let wire = |stage: &conductor_testkit::sim::Stage| Ports {
        executors: Executors::default().with(ExecutorName::Local, Arc::new(Wordy)),
        ..stage.ports(agent)
    };
    let mut rig = Rig::start_with(wire, |_options| {}).await;
    rig.stage.specs[0].executor = ExecutorName::Local;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let log = tool_log(&rig, &run).await;
    let mut answers = std::mem::take(&mut *answers.lock().expect("no panic"));
    // Whoever hands nothing in is asked again, and did the same.
    answers.truncate(log.len());
    (answers, log)
}

/// Makes these calls without a run, upon a log of which only the last call may be read.
async fn without_a_run(role: Role, requests: Vec<ToolRequest>) -> Told {
    let (agent, _answers) = calls(vec![]);
    let rig = Rig::start(agent).await;
    let (effect, run) = (
        EffectId::parse("r1.1.0").expect("an id"),
        RunId::parse("r1").expect("an id"),
    );
    let without = || Without {
        sandbox: Box::new(Wordy),
        authority: Authority::shipped(),
        redactor: Arc::new(KnownForms::default()),
        tool_log: Arc::new(LastOnly(rig.stage.memory.clone())),
        clock: rig.stage.clock.clone(),
        role,
        time: Millis::seconds(60),
    };
    let mut answers = vec![];
    // One host a call: each goes on where the one before ended.
    for request in requests {
        let alone = Alone::open(without(), &effect, &run).await.expect("it opens");
        answers.push(alone.call(request).await.expect("an answer"));
        alone.close().await.expect("it closes");
    }
    (answers, rig.stage.memory.read(&effect).await.expect("calm"))
}

/// A log that nobody reads whole.
#[derive(Debug)]
struct LastOnly(Arc<dyn ToolLog>);

#[async_trait]
impl ToolLog for LastOnly {
    async fn append(&self, lease: Option<&Settlement>, calls: &[ToolCall]) -> Result<(), Fault> {
        self.0.append(lease, calls).await
    }

    async fn read(&self, _invocation: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        Err(Fault::permanent("a log may be longer than anybody wants to hold"))
    }

    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        assert_eq!(part.limit, 1);
        self.0.page(invocation, part).await
    }
}

/// Every call that can be too long, with this much of it, and what is wrong with one byte more.
fn too_long(by: usize) -> Vec<(ToolRequest, &'static str)> {
    let path = "a".repeat(4096 + by);
    let text = "a".repeat(4096 + by);
    let command = "a".repeat(131_072 + by);
    let (a_path, a_pattern, a_command, a_message) = (
        "the path has 4097 bytes, and at most 4096 are taken: name a place below the worktree",
        "the pattern has 4097 bytes, and at most 4096 are taken: look for a part of it",
        "the command has 131073 bytes, and at most 131072 are taken: write it to a file with create_file, and run that",
        "the message has 131073 bytes, and at most 131072 are taken: say it in fewer words",
    );
    let search = |path: &str, pattern| ToolRequest::SearchFiles {
        path: path.to_owned(),
        pattern,
    };
    let create = |path: &str| ToolRequest::CreateFile {
        path: path.to_owned(),
        content: vec![],
    };
    let replace = |path: &str| ToolRequest::StrReplace {
        path: path.to_owned(),
        old: "a".to_owned(),
        new: "b".to_owned(),
    };
    vec![
        (ToolRequest::View { path: path.clone() }, a_path),
        (ToolRequest::ListFiles { path: path.clone() }, a_path),
        (create(&path), a_path),
        (replace(&path), a_path),
        (search(&path, Pattern::Literal("a".to_owned())), a_path),
        (search("", Pattern::Literal(text.clone())), a_pattern),
        (search("", Pattern::Regex(text)), a_pattern),
        (
            ToolRequest::Bash {
                command: command.clone(),
            },
            a_command,
        ),
        (ToolRequest::GitCommit { message: command }, a_message),
    ]
}

/// TOOL-4: what is too long is judged by nobody, kept by nobody, and told to whoever can make it shorter.
#[tokio::test(start_paused = true)]
async fn what_is_too_long_is_refused_before_it_is_judged() {
    let (requests, reasons): (Vec<_>, Vec<_>) = too_long(1).into_iter().unzip();
    let refused: Vec<ToolAnswer> = reasons
        .iter()
        .map(|reason| ToolAnswer::Refused {
            reason: (*reason).to_owned(),
        })
        .collect();
    for (answers, log) in [
        in_a_run(requests.clone()).await,
        without_a_run(Role::Planner, requests.clone()).await,
    ] {
        assert_eq!(answers, refused);
        let seen: Vec<_> = log
            .iter()
            .map(|call| {
                let of = call.target.ends_with(" bytes") && call.target.len() < 40;
                let (tool, decision) = (call.tool.as_str(), call.decision.as_str());
                (tool, decision, call.reason.as_str(), call.result.as_str(), of)
            })
            .collect();
        let expected: Vec<_> = requests
            .iter()
            .zip(&reasons)
            .map(|(request, reason)| (request.name(), "deny", *reason, "not done", true))
            .collect();
        assert_eq!(seen, expected);
    }
}

/// TOOL-4: what is just short enough is judged; and of what came of it no more is kept than anybody reads.
#[tokio::test(start_paused = true)]
async fn a_result_is_kept_no_longer_than_anybody_reads() {
    let requests: Vec<ToolRequest> = too_long(0).into_iter().map(|(request, _)| request).collect();
    for (answers, log) in [
        in_a_run(requests.clone()).await,
        without_a_run(Role::Planner, requests.clone()).await,
    ] {
        assert_eq!(answers.len(), requests.len());
        let allowed = log.iter().filter(|call| call.decision == "allow").count();
        assert_eq!(allowed, 5, "a planner looks and searches");
        for call in log {
            let is_judged = call.reason.starts_with("agents-read-the-worktree: ")
                || call.reason.starts_with("deny-by-default: ");
            assert!(is_judged, "{}", call.reason);
            let is_cut = call.result.ends_with("ä… [cut]") && (4090..=4096).contains(&call.result.len());
            assert!(is_cut || call.decision == "deny", "{} bytes", call.result.len());
        }
    }
}

/// TOOL-4: what no program can be handed is refused as such, and logged as denied.
#[tokio::test(start_paused = true)]
async fn what_no_program_can_be_handed_is_refused_before_it_is_judged() {
    let torn = "echo a\0b".to_owned();
    let requests = vec![
        ToolRequest::Bash {
            command: torn.clone(),
        },
        ToolRequest::GitCommit {
            message: torn.clone(),
        },
    ];
    let reasons = [
        "the command holds U+0000, which no program can be handed: let printf write it, or create_file",
        "the message holds U+0000, which no program can be handed: leave it out",
    ];
    for (answers, log) in [
        in_a_run(requests.clone()).await,
        without_a_run(Role::Implementer, requests.clone()).await,
    ] {
        let refused = |reason: &str| ToolAnswer::Refused {
            reason: reason.to_owned(),
        };
        assert_eq!(answers, reasons.map(refused));
        let seen: Vec<_> = log
            .iter()
            .map(|call| {
                let (tool, target) = (call.tool.as_str(), call.target.as_str());
                (tool, target, call.decision.as_str(), call.reason.as_str())
            })
            .collect();
        let expected = [
            ("bash", torn.as_str(), "deny", reasons[0]),
            ("git_commit", torn.as_str(), "deny", reasons[1]),
        ];
        assert_eq!(seen, expected);
    }
}

/// TOOL-2: a command that never began is no success, whichever tool asked for it.
#[tokio::test(start_paused = true)]
async fn a_command_that_is_not_run_is_refused() {
    let requests = vec![
        ToolRequest::Bash {
            command: "true".to_owned(),
        },
        ToolRequest::GitStatus,
        ToolRequest::GitDiff,
        ToolRequest::GitCommit {
            message: "work".to_owned(),
        },
    ];
    let (answers, log) = without_a_run(Role::Implementer, requests).await;
    let reason = format!("not run: {}", words());
    assert_eq!(answers, vec![ToolAnswer::Refused { reason }; 4]);
    // Each stood there before it acted, too.
    let told = log.iter().filter(|call| call.result.starts_with("not run: "));
    assert_eq!(told.count(), 4);
}
