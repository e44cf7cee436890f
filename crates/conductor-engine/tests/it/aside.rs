//! Long work keeps nobody from going on: it is done beside the thread that keeps leases (DEP-3).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use conductor_domain::Run;
use conductor_domain::invocation::Purpose;
use conductor_domain::phase::Phase;
use conductor_engine::redact::{KnownForms, Passing, Redact};
use conductor_port::agent::{Agent as _, ToolRequest};
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;

const LARGE: usize = 64 * 1024;

/// A redactor that remembers on which threads it took secrets out of a large difference.
#[derive(Debug, Default)]
struct Observed {
    forms: KnownForms,
    threads: Mutex<BTreeSet<String>>,
}

impl Observed {
    fn name(thread: ThreadId) -> String {
        format!("{thread:?}")
    }
}

impl Redact for Observed {
    fn redact(&self, text: &str) -> String {
        if text.len() > LARGE && text.contains("+a line\n") {
            let name = Self::name(thread::current().id());
            self.threads.lock().expect("nobody panics").insert(name);
        }
        self.forms.redact(text)
    }

    fn passing(&self) -> Box<dyn Passing + '_> {
        self.forms.passing()
    }
}

/// Plays what another does, whose Implementer also writes a large file.
fn verbose(agent: FakeAgent) -> FakeAgent {
    FakeAgent::new(move |task, tools| {
        let agent = agent.clone();
        Box::pin(async move {
            if task.invocation.purpose == Purpose::Implement {
                let request = ToolRequest::CreateFile {
                    path: "large.txt".to_owned(),
                    content: "a line\n".repeat(LARGE / 4).into_bytes(),
                };
                tools.call(request).await?;
            }
            agent.invoke(task, String::new(), tools).await
        })
    })
}

/// DEP-3, S-49: a large change is redacted beside the engine's own thread, for the commit, for whoever reviews it and for its inspection.
#[tokio::test(start_paused = true)]
async fn a_large_change_is_redacted_aside() {
    let redactor = Arc::new(Observed::default());
    let seen = redactor.clone();
    let rig = Rig::start_with(
        |stage| stage.ports(verbose(stage.agents())),
        |options| options.redactor = redactor,
    )
    .await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.gate().is_some()).await;
    rig.approve(&run).await;
    let is_inspected = |run: &Run| run.gate().is_some() || matches!(run.phase, Phase::AwaitingMerge(_));
    rig.until(&run, is_inspected).await;
    let threads = seen.threads.lock().expect("nobody panics").clone();
    assert!(!threads.is_empty(), "nothing large was kept");
    let own = Observed::name(thread::current().id());
    assert!(!threads.contains(&own), "{threads:?}");
}
