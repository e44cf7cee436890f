//! What the demo proved: the run's story in figures, and whether audit, replay and clean-up hold.
//!
//! This module does not know how it was played.

use std::fmt::Write as _;

use conductor_domain::id::RunId;
use conductor_domain::time::Millis;
use conductor_web::api::{AuditView, ReplayView, RunDetail};
use conductor_web::visible;
use serde::Serialize;

use crate::demo::stage::Stage;
use crate::exit::Failure;
use crate::show::time;
use crate::show::words::count;

/// What the demo proved.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    run: RunId,
    outcome: String,
    ended_because: Option<String>,
    merged: bool,
    phases: Vec<Phase>,
    plans: u32,
    attempts: u32,
    tests: Vec<String>,
    pull_request: Option<u64>,
    pull_request_url: Option<String>,
    head_sha: Option<String>,
    events: u64,
    worktrees_left: usize,
    audit: Audit,
    replay: Replay,
    set_up_ms: u64,
    duration_ms: u64,
    url: String,
    forge_url: String,
    data_dir: String,
}

/// What becomes of the stage after the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays until Ctrl-C.
    Stays,
    /// It is taken down.
    Goes,
}

/// How long the run was in one phase, all stays together.
#[derive(Debug, Serialize)]
struct Phase {
    name: String,
    ms: u64,
}

#[derive(Debug, Serialize)]
struct Audit {
    holds: bool,
    records: u64,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Replay {
    same: bool,
    decisions: u64,
}

impl Summary {
    /// Looks at what was left on the stage.
    pub(crate) async fn of(
        stage: &Stage,
        run: RunId,
        set_up_ms: u64,
        duration_ms: u64,
    ) -> Result<Self, Failure> {
        let detail: RunDetail = stage.client.get(&format!("/runs/{run}")).await?;
        let audit: AuditView = stage.client.get("/audit").await?;
        let replay: ReplayView = stage.client.get(&format!("/runs/{run}/replay")).await?;
        let mut phases: Vec<Phase> = Vec::new();
        for span in &detail.phases {
            match phases.iter_mut().find(|phase| phase.name == span.name) {
                Some(phase) => phase.ms += span.ms,
                None => phases.push(Phase {
                    name: span.name.clone(),
                    ms: span.ms,
                }),
            }
        }
        Ok(Self {
            merged: detail.run.phase == "completed",
            outcome: detail.run.status.clone(),
            ended_because: detail.run.ended_because.clone(),
            phases,
            plans: detail.plans,
            attempts: detail.attempts,
            tests: detail.tests.iter().map(|test| test.said.clone()).collect(),
            pull_request: detail
                .pull_request
                .as_ref()
                .map(|pull_request| pull_request.number),
            pull_request_url: detail
                .pull_request
                .as_ref()
                .map(|pull_request| pull_request.url.clone()),
            head_sha: detail.pull_request.map(|pull_request| pull_request.head),
            events: detail.run.events,
            worktrees_left: stage.worktrees_left(),
            audit: Audit {
                holds: audit.holds,
                records: audit.records,
                findings: audit.findings.into_iter().map(|finding| finding.what).collect(),
            },
            replay: Replay {
                same: replay.same,
                decisions: replay.decisions,
            },
            set_up_ms,
            duration_ms,
            url: stage.url().to_owned(),
            forge_url: stage.forge_url(),
            data_dir: stage.data_dir.path().display().to_string(),
            run,
        })
    }

    /// Tells whether everything that was to be proved was proved.
    pub(crate) fn is_well(&self) -> bool {
        self.merged && self.audit.holds && self.replay.same && self.worktrees_left == 0
    }

    /// The summary for people.
    pub(crate) fn people(&self, after: After) -> String {
        let mark = |holds: bool| if holds { "✔" } else { "✘" };
        let mut text = String::from("\n");
        let why = self
            .ended_because
            .as_ref()
            .map(|reason| format!(": {}", visible::line(reason)));
        let _string = writeln!(
            text,
            "{} run {} {}{}",
            mark(self.merged),
            self.run,
            self.outcome,
            why.unwrap_or_default()
        );
        for phase in &self.phases {
            let _string = writeln!(
                text,
                "    {:<24}{:>12}",
                phase.name.replace('_', " "),
                time::length(Millis(phase.ms))
            );
        }
        let _string = writeln!(
            text,
            "  {}, {}, {}",
            count(self.plans, "plan"),
            count(self.attempts, "attempt"),
            count(self.events, "event")
        );
        for test in &self.tests {
            let _string = writeln!(text, "  {}", visible::line(test));
        }
        if let (Some(number), Some(url), Some(head)) =
            (self.pull_request, &self.pull_request_url, &self.head_sha)
        {
            // A page of a forge that is about to end is no place to send anybody.
            let page = match after {
                After::Stays => format!(" {url}"),
                After::Goes => String::new(),
            };
            let _string = writeln!(text, "  pull request #{number}{page}\n  head {head}");
        }
        let left = count(self.worktrees_left, "working directory");
        let _string = writeln!(text, "{} clean-up: {left} left", mark(self.worktrees_left == 0));
        let _string = writeln!(
            text,
            "{} audit: {}",
            mark(self.audit.holds),
            count(self.audit.records, "record")
        );
        for finding in &self.audit.findings {
            let _string = writeln!(text, "    {}", visible::line(finding));
        }
        let _string = writeln!(
            text,
            "{} replay: {} the same",
            mark(self.replay.same),
            count(self.replay.decisions, "decision")
        );
        let took = time::length(Millis(self.duration_ms));
        let _string = writeln!(
            text,
            "  {took} in all, set-up {}",
            time::length(Millis(self.set_up_ms))
        );
        text
    }
}
