//! Opens the sandbox of an effect with exactly what its profile may have, and gives it a way out where it may (EXEC-3a).
//!
//! The grants of the project are read when the sandbox is opened: what an operator grants or takes back holds from the
//! next sandbox on, also in a run that is under way. A sandbox without grants has its outlet all the same, because that
//! is how its requests are heard (BEY-6). This module does not know what is asked for, nor what runs inside.

use std::path::PathBuf;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::instance::{Instance, TestEgress};
use conductor_domain::spec::ExecutorName;
use conductor_port::egress::{Outlet, OutletSpec};
use conductor_port::executor::{
    Command, CommandResult, Entry, FileRefusal, Found, Given, Match, Pattern, Profile, Sandbox, SandboxSpec,
};

use super::skills::WithSkills;
use super::{OnRecord, Performance};

/// Opens a sandbox for this effect, which recovery and clean-up find by its lease. If repeated: what an earlier try left
/// running was reaped before.
pub(super) async fn open(
    performance: &Performance<'_>,
    _on_record: &OnRecord,
    executor: ExecutorName,
    profile: Profile,
    dir: PathBuf,
    given: Vec<Given>,
) -> Result<Box<dyn Sandbox>, Fault> {
    let (effect, run) = (performance.effect().clone(), performance.run().clone());
    let mut spec = SandboxSpec::new(effect, run, profile, dir);
    spec.given.clone_from(&given);
    let outlet = outlet(performance, executor, profile).await?;
    spec.ways.extend(outlet.iter().map(|outlet| outlet.way()));
    let inner = performance.executor(executor)?.open(spec).await?;
    let inner: Box<dyn Sandbox> = match outlet {
        Some(outlet) => Box::new(WithOutlet { inner, outlet }),
        None => inner,
    };
    Ok(if given.is_empty() {
        inner
    } else {
        Box::new(WithSkills { inner, given })
    })
}

async fn outlet(
    performance: &Performance<'_>,
    executor: ExecutorName,
    profile: Profile,
) -> Result<Option<Box<dyn Outlet>>, Fault> {
    let (instance, _head) = performance.ports().views.instance().await?;
    if !has_outlet(performance, executor, profile, &instance) {
        return Ok(None);
    }
    let spec = OutletSpec {
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        grants: match instance.repos.get(&performance.repo().id) {
            Some(registration) => instance.egress_of(&registration.project).to_vec(),
            None => vec![],
        },
    };
    performance.ports().egress.open(spec).await.map(Some)
}

/// Decides who has an outlet: tools, and tests where the repository's registration says so.
fn has_outlet(
    performance: &Performance<'_>,
    executor: ExecutorName,
    profile: Profile,
    instance: &Instance,
) -> bool {
    match executor {
        ExecutorName::Local | ExecutorName::Docker => {}
        // It shuts nobody in, so there is nothing to lead out of.
        ExecutorName::UnsafePlain => return false,
    }
    match profile {
        // An agent's program has other ways, and whoever reads a worktree needs none.
        Profile::Agent | Profile::Snapshot => false,
        Profile::Tool => true,
        Profile::Test => match instance.repos.get(&performance.repo().id) {
            Some(registration) => registration.test_egress == TestEgress::AsProject,
            None => false,
        },
    }
}

/// A sandbox whose commands find their outlet, and which closes it after itself.
#[derive(Debug)]
struct WithOutlet {
    inner: Box<dyn Sandbox>,
    outlet: Box<dyn Outlet>,
}

/// The words of a command as a person would type it.
fn words(argv: &[String]) -> String {
    match argv {
        [shell, flag, script] if shell == "bash" && flag == "-c" => script.clone(),
        argv => argv.join(" "),
    }
}

#[async_trait]
impl Sandbox for WithOutlet {
    async fn bash(&self, mut command: Command) -> Result<CommandResult, Fault> {
        command
            .environment
            .extend(self.outlet.environment(&words(&command.argv)));
        self.inner.bash(command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        self.inner.view(path).await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.create_file(path, content).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.str_replace(path, old, new).await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        self.inner.list(path).await
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        self.inner.search(path, pattern).await
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        let closed = self.inner.close().await;
        self.outlet.close().await;
        closed
    }
}
