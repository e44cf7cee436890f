//! What the agents of a story do: a plan that is sent back once, a first patch that fails the tests, a second that
//! passes. Each call takes a while, so that Conductor can die in the middle.
//!
//! This module does not know Conductor.

use std::sync::Arc;
use std::time::Duration;

use conductor_domain::fault::Fault;
use conductor_domain::invocation::Purpose;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft, Verdict};
use conductor_domain::testing::Ending;
use conductor_port::agent::{AgentEnd, GithubCall, Task, ToolRequest, Tools};

use crate::agent::FakeAgent;
use crate::workspace::Tree;
use crate::world::World;

const WRONG: &str = "wrong";
const RIGHT: &str = "right";

/// The only command there is: passes when every thing is right.
pub(super) fn run_command(argv: &[String], files: &mut Tree) -> (Ending, Vec<u8>) {
    if argv.first().is_none_or(|program| program != "check") {
        return (Ending::Exited { code: 0 }, b"did something".to_vec());
    }
    let wrong = files
        .values()
        .filter(|content| content.starts_with(WRONG.as_bytes()))
        .count();
    let code = i32::from(wrong > 0);
    (
        Ending::Exited { code },
        format!("{wrong} things are wrong").into_bytes(),
    )
}

/// The agents of a story.
pub(super) fn agent(world: Arc<World>, question: bool) -> FakeAgent {
    FakeAgent::new(move |task, tools| {
        let world = world.clone();
        Box::pin(async move { act(&world, question, &task, tools).await })
    })
}

async fn act(world: &World, question: bool, task: &Task, tools: &dyn Tools) -> Result<AgentEnd, Fault> {
    let file = format!("things/{}.txt", task.run);
    let attempt = task.invocation.attempt;
    tools.say("I begin.").await;
    think(world).await;
    tools
        .call(ToolRequest::View {
            path: "README.md".to_owned(),
        })
        .await?;
    think(world).await;
    match task.invocation.purpose {
        Purpose::Plan if question && attempt == 1 && task.run.as_str() == "r1" => {
            tools
                .call(ToolRequest::AskHuman {
                    question: "Which colour?".to_owned(),
                })
                .await?;
        }
        Purpose::Plan => {
            let draft = PlanDraft {
                summary: format!("Make the thing of {}", task.run),
                approach: "Write a file.".to_owned(),
                files: vec![file],
                risks: vec![],
            };
            tools.call(ToolRequest::SubmitPlan(draft)).await?;
        }
        Purpose::ReviewPlan => {
            let verdict = if attempt == 1 {
                Verdict::Reject
            } else {
                Verdict::Approve
            };
            tools.call(ToolRequest::SubmitReview(review(verdict))).await?;
        }
        Purpose::Implement => implement(world, &file, tools).await?,
        Purpose::InterpretTests => {
            // The Tester always lies; nothing may come of it.
            let draft = TestReportDraft {
                passed: true,
                interpretation: "All is well.".to_owned(),
            };
            tools.call(ToolRequest::SubmitTestReport(draft)).await?;
        }
        Purpose::ReviewImplementation => {
            tools
                .call(ToolRequest::SubmitReview(review(Verdict::Approve)))
                .await?;
        }
    }
    think(world).await;
    Ok(AgentEnd::Finished { tokens: 100 })
}

async fn implement(world: &World, file: &str, tools: &dyn Tools) -> Result<(), Fault> {
    let request = ToolRequest::CreateFile {
        path: file.to_owned(),
        content: WRONG.as_bytes().to_vec(),
    };
    let made = tools.call(request).await?;
    think(world).await;
    tools
        .call(ToolRequest::Github(GithubCall::CommentIssue {
            number: None,
            text: "I am at it.".to_owned(),
        }))
        .await?;
    if matches!(made, conductor_port::agent::ToolAnswer::Refused { .. }) {
        // The first try is there already: mend it.
        let (path, old, new) = (file.to_owned(), WRONG.to_owned(), RIGHT.to_owned());
        tools.call(ToolRequest::StrReplace { path, old, new }).await?;
    }
    think(world).await;
    tools
        .call(ToolRequest::Bash {
            command: "true".to_owned(),
        })
        .await?;
    Ok(())
}

fn review(verdict: Verdict) -> ReviewDraft {
    ReviewDraft {
        verdict,
        summary: "I looked at it.".to_owned(),
        findings: vec![],
    }
}

async fn think(world: &World) {
    tokio::time::sleep(Duration::from_millis(world.chance.below(3000))).await;
}
