//! Serves the tools of one invocation: checks each call against role and limits, logs it, does it, and remembers.
//!
//! What it remembers is the evidence that the invocation's outcome is made from; the agent's own word is not
//! (ARCHITECTURE invariant 10). File tools and commands act inside the sandbox that the invocation owns; everything
//! else becomes an input. This module does not know how an agent is run or how tools reach it.

mod alone;
mod bounds;
mod forge;
mod log;
mod rules;
mod speech;
mod worktree;
mod diff;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::{CallWish, InvocationLimit, Outcome};
use conductor_domain::plan::{
    InvalidSubmission, MAX_TEXT, Plan, PlanDraft, Review, ReviewDraft, TestReport, TestReportDraft,
};
use conductor_domain::role::Role;
use conductor_domain::time::Millis;
use conductor_policy::authority::{Authority, Ruling, Verdict};
use conductor_port::agent::{Misfit, ToolAnswer, ToolRequest, Tools};
use conductor_port::executor::Sandbox;
use tokio_util::sync::CancellationToken;

use crate::crash::crash_point;
use crate::engine::Engine;

use rules::{Judge, Lifted, Whose};
use speech::Speech;

pub use alone::{Alone, Without};
pub(crate) use log::{Entry, Log, head_of, open as open_log};

/// What was seen of an invocation through its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How many calls were made.
    pub(crate) calls: u32,
    /// The first valid submission, as the outcome it stands for.
    pub(crate) submission: Option<Outcome>,
    /// What was submitted in a valid submission.
    pub(crate) artifact: Option<Artifact>,
    /// Why the last invalid submission was refused.
    pub(crate) invalid: Option<String>,
    /// What the agent asked a human.
    pub(crate) question: Option<String>,
    /// The call that a person must approve.
    pub(crate) wish: Option<CallWish>,
    /// The approved calls that were made; each is let through once.
    pub(crate) used: Vec<Digest>,
    /// The limit that was used up.
    pub(crate) limit: Option<InvocationLimit>,
    /// The first fault that a tool met.
    pub(crate) fault: Option<Fault>,
}

/// Whose tools they are.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) effect: EffectId,
    pub(crate) run: RunId,
    pub(crate) role: Role,
    /// The policies that its run is held to.
    pub(crate) authority: Arc<Authority>,
    /// The calls that a person approved (TOOL-4b).
    pub(crate) approved: Vec<Digest>,
    /// How many calls it may make.
    pub(crate) calls: u32,
    /// How long one command may take.
    pub(crate) time: Millis,
}

/// The tools of one invocation.
#[derive(Debug)]
pub(crate) struct ToolHost<'a> {
    engine: &'a Engine,
    judge: Judge,
    caller: Caller,
    sandbox: &'a dyn Sandbox,
    log: Log,
    seen: Mutex<Seen>,
    speech: Speech<'a>,
    /// Fires when a human was asked: the agent must end soon.
    pub(crate) asked: CancellationToken,
    /// Fires when a limit was used up: the agent ends now.
    pub(crate) cut: CancellationToken,
}

impl<'a> ToolHost<'a> {
    pub(crate) fn new(engine: &'a Engine, caller: Caller, sandbox: &'a dyn Sandbox, log: Log) -> Self {
        Self {
            speech: Speech::new(engine, caller.run.clone(), caller.effect.clone()),
            engine,
            judge: Judge::new(Arc::clone(&caller.authority), caller.role),
            caller,
            sandbox,
            log,
            seen: Mutex::default(),
            asked: CancellationToken::new(),
            cut: CancellationToken::new(),
        }
    }

    /// Shows words that nothing more came after; runs beside the agent and never ends.
    pub(crate) async fn let_words_out<T>(&self) -> T {
        self.speech.let_out().await
    }

    /// Returns what was seen, and ends the log and what the agent said.
    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; tells whether it may go on.
    fn count(&self) -> bool {
        let mut seen = self.seen();
        seen.calls += 1;
        if seen.calls > self.caller.calls {
            seen.limit = Some(InvocationLimit::ToolCalls);
            return false;
        }
        true
    }

    /// Asks the policies; where they say no or ask, the run's overrides of this moment have the last word (SEC-1).
    async fn judge(&self, request: &ToolRequest, whose: Whose) -> Result<Verdict, Fault> {
        let verdict = self.judge.judge(request, whose);
        if verdict.ruling == Ruling::Allow {
            return Ok(verdict);
        }
        let run = self.run().await?;
        let lifted = Lifted {
            reliefs: &run.reliefs,
            now: self.engine.ports.clock.now(),
        };
        Ok(self.judge.judge_with(request, whose, lifted))
    }

    /// Counts a call, and tells whether it may go on; one that may not is logged as denied.
    async fn may_go_on(&self, entry: &Entry) -> Result<bool, Fault> {
        if self.asked.is_cancelled() || self.cut.is_cancelled() {
            self.deny(entry.clone(), "the invocation is over").await?;
            return Ok(false);
        }
        if !self.count() {
            self.deny(entry.clone(), "the invocation has used up its tool calls")
                .await?;
            self.cut.cancel();
            return Ok(false);
        }
        Ok(true)
    }

    async fn deny(&self, entry: Entry, reason: &str) -> Result<(), Fault> {
        let entry = Entry {
            decision: "deny",
            reason: reason.to_owned(),
            result: "not done".to_owned(),
            ..entry
        };
        self.log.add_durably(entry).await.map(|_n| ())
    }

    async fn act(&self, entry: Entry, request: ToolRequest, whose: Whose) -> Result<ToolAnswer, Fault> {
        let begun = self.log.begin(entry, worktree::reach(&request)).await?;
        let may_see = |path: &str| self.judge.may_see(path);
        let acted = worktree::act(self.sandbox, self.caller.time, &request, &may_see).await;
        let entry = begun.ended();
        if let Some(acted) = acted? {
            let result = self.redact(&acted.result);
            self.log.add(Entry { result, ..entry }).await?;
            return Ok(acted.answer);
        }
        match request {
            ToolRequest::Github(call) => self.github(entry, call, whose).await,
            ToolRequest::SubmitPlan(draft) => self.submit(entry, Submission::Plan(draft)).await,
            ToolRequest::SubmitReview(draft) => self.submit(entry, Submission::Review(draft)).await,
            ToolRequest::SubmitTestReport(draft) => self.submit(entry, Submission::TestReport(draft)).await,
            ToolRequest::AskHuman { question } => self.ask(entry, question).await,
            ToolRequest::View { .. }
            | ToolRequest::CreateFile { .. }
            | ToolRequest::StrReplace { .. }
            | ToolRequest::Bash { .. }
            | ToolRequest::ListFiles { .. }
            | ToolRequest::SearchFiles { .. }
            | ToolRequest::GitStatus
            | ToolRequest::GitDiff
            | ToolRequest::GitCommit { .. } => Err(Fault::permanent("a tool of the sandbox was not served")),
        }
    }

    /// Answers that an allowed call came to nothing; the agent can act on the reason.
    async fn refuse(&self, entry: Entry, reason: String) -> Result<ToolAnswer, Fault> {
        self.log
            .add(Entry {
                result: self.redact(&reason),
                ..entry
            })
            .await?;
        Ok(ToolAnswer::Refused { reason })
    }

    /// Keeps the first valid submission; a second is refused, an invalid one can be mended.
    async fn submit(&self, entry: Entry, submission: Submission) -> Result<ToolAnswer, Fault> {
        if self.seen().submission.is_some() {
            return self
                .refuse(
                    entry,
                    "something was submitted already, and the first counts".to_owned(),
                )
                .await;
        }
        let text = match submission.render() {
            Ok(text) => text,
            Err(invalid) => {
                let reason = invalid.to_string();
                self.seen().invalid = Some(reason.clone());
                return self.refuse(entry, reason).await;
            }
        };
        if let Some(part) = submission.hides_in(&text, &|text| self.redact(text)) {
            let reason = format!(
                "the plan holds what looks like a secret in its {part}; take it out and submit again"
            );
            self.seen().invalid = Some(reason.clone());
            return self.refuse(entry, reason).await;
        }
        let artifact = self.keep(submission.kind(), &text).await?;
        let outcome = submission.outcome(artifact.clone());
        // Two calls may have come this far at once; the first of them counts.
        let is_first = {
            let mut seen = self.seen();
            let is_first = seen.submission.is_none();
            if is_first {
                seen.submission = Some(outcome);
                seen.artifact = Some(artifact);
            }
            is_first
        };
        if !is_first {
            return self
                .refuse(
                    entry,
                    "something was submitted already, and the first counts".to_owned(),
                )
                .await;
        }
        self.log.add(entry).await?;
        Ok(ToolAnswer::Done {
            output: b"accepted".to_vec(),
        })
    }

    async fn ask(&self, entry: Entry, question: String) -> Result<ToolAnswer, Fault> {
        if question.trim().is_empty() || question.len() > MAX_TEXT {
            return self
                .refuse(
                    entry,
                    format!(
                        "a question has 1 to {MAX_TEXT} bytes, this one {}",
                        question.len()
                    ),
                )
                .await;
        }
        self.log.add_durably(entry).await?;
        self.seen().question.get_or_insert(question);
        self.asked.cancel();
        Ok(ToolAnswer::Stop)
    }

    /// Tells whether a person approved exactly this call, and it was not made yet; from then on it was.
    fn is_approved(&self, entry: &Entry) -> bool {
        let call = entry.call();
        let among = |calls: &[Digest]| calls.iter().filter(|known| **known == call).count();
        let mut seen = self.seen();
        if among(&seen.used) >= among(&self.caller.approved) {
            return false;
        }
        seen.used.push(call);
        true
    }

    /// Lets an approved call pass, and asks a person about any other. One that could not be shown plainly is refused even
    /// where its digest was approved: that was taken without what is hidden in it (S-47).
    async fn approved(&self, entry: Entry, request: &ToolRequest, verdict: &Verdict) -> Result<Asked, Fault> {
        let words = match rules::words(request, &|text| self.redact(text)) {
            Ok(words) => words,
            Err(why) => {
                let reason = format!("{} needs a person's approval first, and {why}", entry.tool);
                self.deny(entry, &reason).await?;
                return Ok(Asked::Not(ToolAnswer::Refused { reason }));
            }
        };
        if self.is_approved(&entry) {
            return Ok(Asked::Approved(Entry {
                decision: "allow",
                reason: format!("approved by a person; {}", entry.reason),
                ..entry
            }));
        }
        self.ask_about(entry, &words, verdict).await.map(Asked::Not)
    }

    /// Records a call that a person must approve, and ends the invocation; the first counts (TOOL-4b).
    async fn ask_about(&self, entry: Entry, words: &str, verdict: &Verdict) -> Result<ToolAnswer, Fault> {
        let call = entry.call();
        let tool = entry.tool.to_owned();
        self.log
            .add_durably(Entry {
                result: "not done".to_owned(),
                ..entry
            })
            .await?;
        let text = self.keep(ArtifactKind::Call, words).await?;
        self.seen().wish.get_or_insert(CallWish {
            tool,
            call,
            text,
            reason: format!("{}: {}", verdict.policy, verdict.reason),
        });
        self.asked.cancel();
        Ok(ToolAnswer::Stop)
    }

    async fn keep(&self, kind: ArtifactKind, text: &str) -> Result<Artifact, Fault> {
        self.engine
            .ports
            .blobs
            .put(kind, self.redact(text).as_bytes())
            .await
    }

    fn redact(&self, text: &str) -> String {
        self.engine.options.redactor.redact(text)
    }
}

#[async_trait]
impl Tools for ToolHost<'_> {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        crash_point!("tool.before");
        if let Some(unfit) = bounds::unfit(&request) {
            return self.misfit(unfit).await;
        }
        let whose = self.whose(&request).await?;
        let verdict = self.judge(&request, whose).await?;
        let entry = rules::entry(&request, &verdict, &|text| self.redact(text));
        if !self.may_go_on(&entry).await? {
            return Ok(ToolAnswer::Stop);
        }
        let entry = match verdict.ruling {
            Ruling::RequireApproval => match self.approved(entry, &request, &verdict).await? {
                Asked::Approved(entry) => entry,
                Asked::Not(answer) => return Ok(answer),
            },
            Ruling::Allow | Ruling::Deny => entry,
        };
        if verdict.ruling == Ruling::Deny {
            let reason = rules::refusal(self.caller.role, &request, &verdict);
            let entry = Entry {
                result: "not done".to_owned(),
                ..entry
            };
            self.log.add_durably(entry).await?;
            // Whoever wonders why nothing was handed in is told.
            if is_submission(&request) {
                self.seen().invalid = Some(reason.clone());
            }
            return Ok(ToolAnswer::Refused { reason });
        }
        let answer = self.act(entry.clone(), request, whose).await;
        if let Err(fault) = &answer {
            self.seen().fault.get_or_insert_with(|| fault.clone());
            self.log
                .add(Entry {
                    result: self.redact(&fault.what),
                    ..entry
                })
                .await?;
        }
        crash_point!("tool.after");
        answer
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        let entry = rules::misfit(&call, &|text| self.redact(text));
        if !self.may_go_on(&entry).await? {
            return Ok(ToolAnswer::Stop);
        }
        self.log.add_durably(entry).await?;
        Ok(ToolAnswer::Refused { reason: call.reason })
    }

    async fn say(&self, text: &str) {
        self.speech.say(text);
    }
}

/// What became of a call that policies want approved.
#[derive(Debug)]
enum Asked {
    /// A person approved it; it is logged so.
    Approved(Entry),
    /// Nobody did; the agent is answered this.
    Not(ToolAnswer),
}

fn is_submission(request: &ToolRequest) -> bool {
    matches!(
        request,
        ToolRequest::SubmitPlan(_) | ToolRequest::SubmitReview(_) | ToolRequest::SubmitTestReport(_)
    )
}

/// A structured result of an agent.
#[derive(Debug)]
enum Submission {
    Plan(PlanDraft),
    Review(ReviewDraft),
    TestReport(TestReportDraft),
}

impl Submission {
    fn render(&self) -> Result<String, InvalidSubmission> {
        match self {
            Self::Plan(draft) => draft.render(),
            Self::Review(draft) => draft.render(),
            Self::TestReport(draft) => draft.render(),
        }
    }

    /// Names the part of a plan that would not be kept as it was written: what a person approves must be what was planned
    /// (S-47). Reviews and test reports are only read, and are kept without their secrets.
    fn hides_in(&self, text: &str, redact: &dyn Fn(&str) -> String) -> Option<&'static str> {
        let draft = match self {
            Self::Plan(draft) => draft,
            Self::Review(_) | Self::TestReport(_) => return None,
        };
        let is_changed = |text: &str| redact(text) != text;
        let parts = [
            ("summary", std::slice::from_ref(&draft.summary)),
            ("approach", std::slice::from_ref(&draft.approach)),
            ("files", draft.files.as_slice()),
            ("risks", draft.risks.as_slice()),
        ];
        let part = parts
            .into_iter()
            .find(|(_, texts)| texts.iter().any(|text| is_changed(text)));
        // One that arises only where the parts are put together has no part of its own.
        part.map(|(name, _)| name)
            .or_else(|| is_changed(text).then_some("text"))
    }

    fn kind(&self) -> ArtifactKind {
        match self {
            Self::Plan(_) => ArtifactKind::Plan,
            Self::Review(_) => ArtifactKind::Review,
            Self::TestReport(_) => ArtifactKind::TestReport,
        }
    }

    fn outcome(self, artifact: Artifact) -> Outcome {
        match self {
            Self::Plan(draft) => Outcome::Planned {
                plan: Plan {
                    artifact,
                    summary: draft.summary,
                    files: draft.files,
                },
            },
            Self::Review(draft) => Outcome::Reviewed {
                review: Review {
                    verdict: draft.verdict,
                    artifact,
                },
            },
            Self::TestReport(draft) => Outcome::Interpreted {
                report: TestReport {
                    claims_passed: draft.passed,
                    artifact,
                },
            },
        }
    }
}
