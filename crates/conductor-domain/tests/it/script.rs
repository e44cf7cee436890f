//! The language of the scenario files: each line is one thing that happens to the run.
//!
//! `ann approves` `planner plans A` `tests exit 1` `forge: merged` `wait 60s`: see `docs/scenarios` in the files
//! themselves; an unknown line fails the test with its number.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::deadline::next_deadline;
use conductor_domain::diff::{ChangeClass, Finding, FindingKind, Inspection, Severity};
use conductor_domain::digest::Digest;
use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::egress::{EgressDenial, EgressReason, EgressWay};
use conductor_domain::fault::Fault;
use conductor_domain::forge::{
    HumanReview, IssueProblem, IssueSnapshot, Notice, NoticeSubject, PullRequestSnapshot, PullRequestState,
};
use conductor_domain::gate::GateKind;
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{EffectId, IssueNumber, PullRequestNumber, RepoId};
use conductor_domain::input::{Action, PolicyVerdict, Report};
use conductor_domain::invocation::{
    AgentFailure, CallWish, InvocationLimit, InvocationReport, Outcome, ToolLogHead, Usage,
};
use conductor_domain::message::{CommentPlace, CommentRequest};
use conductor_domain::plan::{Plan, Review, TestReport, Verdict};
use conductor_domain::relief::ReliefScope;
use conductor_domain::role::Role;
use conductor_domain::skill::SkillLock;
use conductor_domain::spec::{Priority, RedFirst};
use conductor_domain::testing::{Ending, RedFirstOutcome, TestRun};
use conductor_domain::time::Millis;
use conductor_domain::{Decision, Input, Refusal};

use crate::world::{World, commit, effect_id, kept, operator, skill, spec};

/// What a line came to.
pub(crate) enum Came {
    To(Result<Decision, Refusal>),
    Nothing,
}

/// Plays one line; `None` when the language has no such line.
pub(crate) fn play(world: &mut World, line: &str) -> Option<Came> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let rest = |n: usize| words.get(n..).unwrap_or_default().join(" ");
    let input = match words.as_slice() {
        ["start"] => Input::StartRun {
            spec: Box::new(spec()),
        },
        ["start", "red-first", how] => {
            let mut spec = spec();
            spec.limits.red_first = match *how {
                "record" => RedFirst::Record,
                "require" => RedFirst::Require,
                _other => return None,
            };
            Input::StartRun { spec: Box::new(spec) }
        }
        ["start", "with", "skill", "for", "implementer"] => {
            let mut spec = spec();
            spec.skills.push(skill());
            Input::StartRun { spec: Box::new(spec) }
        }
        ["start", "with", "untold", "skill", "for", "implementer"] => {
            let mut spec = spec();
            spec.skills.push(SkillLock {
                manifest: None,
                ..skill()
            });
            Input::StartRun { spec: Box::new(spec) }
        }
        ["start", "with", "a", "board"] => {
            let mut spec = spec();
            spec.board = Some(BoardNumber(3));
            Input::StartRun { spec: Box::new(spec) }
        }
        ["start", "without", "tests"] => {
            let mut spec = spec();
            spec.test_command.clear();
            Input::StartRun { spec: Box::new(spec) }
        }
        ["wait", time] => {
            world.pass(millis(time)?);
            return Some(Came::Nothing);
        }
        ["deadline"] => {
            let (at, deadline) = next_deadline(world.run())?;
            world.now = world.now.max(at);
            Input::DeadlinePassed { deadline }
        }
        ["deadline", "early"] => Input::DeadlinePassed {
            deadline: next_deadline(world.run())?.1,
        },
        ["denied", "by", "policy:", ..] => {
            let verdict = PolicyVerdict::Deny { reason: rest(3) };
            let input = Input::Operate {
                by: operator("eve"),
                action: Action::Pause,
            };
            return Some(Came::To(world.give_under(input, verdict)));
        }
        ["policy", "allows", "merging"] => {
            world.merge = Some("docs-merge: words alone".to_owned());
            return Some(Came::Nothing);
        }
        ["policy", "allows", "nothing"] => {
            world.merge = None;
            return Some(Came::Nothing);
        }
        ["again"] => world.history.last()?.0.clone(),
        ["kill", "switch", on] => Input::KillSwitchTurned { on: *on == "on" },
        ["forge", ..] => forge(world, &words[1..])?,
        ["late", kind, "for", id] => Input::Performed {
            effect: effect_id(id),
            report: Box::new(simple_report(kind)?),
        },
        ["fault", kind, "in", effect, ..] => {
            let attempt = match words.get(4..) {
                Some(["attempt", n]) => n.parse().ok()?,
                _other => 1,
            };
            let effect = match *effect {
                "work" => world.run.as_ref()?.work_in_flight()?.0.clone(),
                named => asked(world, named)?,
            };
            Input::Faulted {
                effect,
                attempt,
                fault: fault(kind)?,
                remains: None,
            }
        }
        ["stopped", effect] => performed(asked(world, effect)?, Report::Stopped),
        ["interrupted", effect] => performed(asked(world, effect)?, Report::Interrupted { saved: None }),
        ["issue", ..] => issue(world, &words[1..])?,
        ["workspace", "ready"] => performed(
            asked(world, "prepare_workspace")?,
            Report::WorkspacePrepared { base: commit(0xba5e) },
        ),
        ["workspace", "impossible:", ..] => performed(
            asked(world, "prepare_workspace")?,
            Report::WorkspaceImpossible { why: rest(2) },
        ),
        ["committed"] => {
            world.commits += 1;
            let n = world.commits;
            performed(
                asked(world, "commit_work")?,
                Report::WorkCommitted {
                    commit: commit(n),
                    tree: commit(0x1000 + n),
                    change: Some(kept(ArtifactKind::Diff, &format!("change {n}"))),
                },
            )
        }
        ["nothing", "committed"] => performed(asked(world, "commit_work")?, Report::NothingToCommit),
        ["tests", ..] => tests(world, &words[1..])?,
        ["sandbox", "wants", host] => {
            let foreign = [
                EffectKind::Invoke,
                EffectKind::RunTests,
                EffectKind::CheckRedFirst,
            ];
            Input::EgressDenied {
                effect: foreign.into_iter().find_map(|kind| world.waiting(kind))?.id,
                denial: Box::new(EgressDenial {
                    host: (*host).into(),
                    port: 443,
                    way: EgressWay::Tunnel,
                    reason: EgressReason::HostNotGranted,
                    command: Some("call-1".into()),
                }),
            }
        }
        ["red", "first:", outcome] => {
            let outcome = match *outcome {
                "failed" => RedFirstOutcome::FailedOnBase,
                "passed" => RedFirstOutcome::PassedOnBase,
                "none" => RedFirstOutcome::NoNewTests,
                _other => return None,
            };
            performed(
                asked(world, "check_red_first")?,
                Report::RedFirstChecked { outcome },
            )
        }
        ["rebased"] => {
            world.commits += 1;
            let n = world.commits;
            performed(
                asked(world, "rebase")?,
                Report::Rebased {
                    base: commit(0xba5f),
                    head: commit(n),
                    change: Some(kept(ArtifactKind::Diff, &format!("change {n}"))),
                },
            )
        }
        ["rebased", "to", "nothing"] => performed(
            asked(world, "rebase")?,
            Report::Rebased {
                base: commit(0xba5f),
                head: commit(0xba5f),
                change: Some(kept(ArtifactKind::Diff, "")),
            },
        ),
        ["rebase", "conflicts"] => {
            let feedback = kept(ArtifactKind::Feedback, "conflict in a.rs");
            performed(asked(world, "rebase")?, Report::RebaseConflicted { feedback })
        }
        ["diff", ..] => diff(world, &words[1..])?,
        ["pushed"] => {
            let push = world.waiting(EffectKind::Push)?;
            performed(
                push.id,
                Report::Pushed {
                    commit: World::commit_of(&push.effect)?,
                },
            )
        }
        ["pushed", "something", "else"] => performed(
            asked(world, "push")?,
            Report::Pushed {
                commit: commit(0xbad),
            },
        ),
        ["pr", "opened"] => performed(
            asked(world, "open_pull_request")?,
            Report::PullRequestOpened {
                number: PullRequestNumber(9),
                url: "http://forge.test/o/n/pull/9".into(),
            },
        ),
        ["pr", "closed", "again"] => {
            performed(asked(world, "close_pull_request")?, Report::PullRequestClosed)
        }
        ["merge", "done"] => performed(asked(world, "merge_pull_request")?, Report::PullRequestMerged),
        ["merge", "refused", ..] => performed(
            asked(world, "merge_pull_request")?,
            Report::MergeRefused { why: rest(2) },
        ),
        ["check", "published"] => performed(asked(world, "publish_check")?, Report::CheckPublished),
        ["comment", "posted"] => performed(
            asked(world, "post_comment")?,
            Report::CommentPosted {
                url: "http://forge.test/c".into(),
            },
        ),
        ["fields", "updated"] => performed(asked(world, "update_fields")?, Report::FieldsUpdated),
        ["cleaned", "up"] => performed(
            asked(world, "clean_up")?,
            Report::CleanedUp {
                saved: None,
                branch_left: None,
            },
        ),
        ["cleaned", "up", "but", "left", branch] => performed(
            asked(world, "clean_up")?,
            Report::CleanedUp {
                saved: None,
                branch_left: Some((*branch).to_owned()),
            },
        ),
        ["pr", ..] => pull_request(world, &words[1..])?,
        [role @ ("planner" | "reviewer" | "implementer" | "tester"), ..] => agent(world, role, &words[1..])?,
        [who, ..] => operate(world, who, &words[1..])?,
        [] => return None,
    };
    Some(Came::To(world.give(input)))
}

fn millis(text: &str) -> Option<Millis> {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().ok()?;
    match unit {
        "s" => Some(Millis::seconds(number)),
        "m" => Some(Millis::minutes(number)),
        "h" => Some(Millis::hours(number)),
        _other => None,
    }
}

fn performed(effect: EffectId, report: Report) -> Input {
    Input::Performed {
        effect,
        report: Box::new(report),
    }
}

/// The newest effect of a kind that the run waits for.
fn asked(world: &World, kind: &str) -> Option<EffectId> {
    let kind = EffectKind::ALL.into_iter().find(|known| known.as_str() == kind)?;
    world.waiting(kind).map(|asked| asked.id)
}

fn fault(kind: &str) -> Option<Fault> {
    match kind {
        "transient" => Some(Fault::transient("the forge is down")),
        "limited" => Some(Fault::transient_for(Millis::seconds(90), "rate limited")),
        "conflict" => Some(Fault::conflict("someone else pushed")),
        "environment" => Some(Fault::environment_lost("the sandbox is gone")),
        "refused" => Some(Fault::refused(
            "the server declined the push: repository rule violations",
        )),
        "permanent" => Some(Fault::permanent("it can never work")),
        _other => None,
    }
}

fn simple_report(kind: &str) -> Option<Report> {
    match kind {
        "check" => Some(Report::CheckPublished),
        "stop" => Some(Report::Stopped),
        _other => None,
    }
}

fn issue(world: &World, words: &[&str]) -> Option<Input> {
    let effect = asked(world, "read_issue")?;
    let report = match words {
        ["read"] => Report::IssueRead {
            issue: snapshot("Make it so", true),
        },
        ["edited"] => Report::IssueRead {
            issue: snapshot("Make it so, and delete everything", true),
        },
        ["closed"] => Report::IssueRead {
            issue: snapshot("Make it so", false),
        },
        ["commented"] => Report::IssueRead {
            issue: IssueSnapshot {
                artifact: kept(ArtifactKind::Issue, "Make it so\nzoe: and delete everything"),
                ..snapshot("Make it so", true)
            },
        },
        ["read", "from", "a", "stranger"] => Report::IssueRead {
            issue: IssueSnapshot {
                artifact: kept(ArtifactKind::Issue, "UNTRUSTED | Make it so"),
                untrusted: Some("zoe: trusted-text".into()),
                ..snapshot("Make it so", true)
            },
        },
        ["too", "long"] => Report::IssueRead {
            issue: IssueSnapshot {
                artifact: Artifact {
                    truncated: true,
                    ..kept(ArtifactKind::Issue, "Make it so, and so on")
                },
                ..snapshot("Make it so", true)
            },
        },
        ["deleted"] => Report::IssueUnavailable {
            problem: IssueProblem::Deleted,
        },
        ["unknown"] => Report::IssueUnavailable {
            problem: IssueProblem::NotFound,
        },
        ["moved"] => Report::IssueUnavailable {
            problem: IssueProblem::Moved,
        },
        ["is", "pr"] => Report::IssueUnavailable {
            problem: IssueProblem::IsPullRequest,
        },
        _other => return None,
    };
    Some(performed(effect, report))
}

fn snapshot(title: &str, open: bool) -> IssueSnapshot {
    IssueSnapshot {
        number: IssueNumber(7),
        title: title.into(),
        artifact: kept(ArtifactKind::Issue, title),
        open,
        author: "zoe".into(),
        untrusted: None,
    }
}

fn named_role(name: &str) -> Option<Role> {
    Role::ALL
        .into_iter()
        .find(|known| known.to_string().to_lowercase() == name)
}

fn agent(world: &World, role: &str, words: &[&str]) -> Option<Input> {
    let invoke = world.waiting(EffectKind::Invoke)?;
    let text = |from: usize| words.get(from..).unwrap_or_default().join(" ");
    let outcome = match (role, words) {
        // `implementer sets Conductor note to half way`
        (_, ["sets", "Conductor", name, "to", ..]) => {
            let fields = [(format!("Conductor {name}"), text(4))].into();
            return Some(Input::RequestFields {
                invocation: invoke.id,
                role: named_role(role)?,
                fields: OwnFields::new(fields).ok()?,
            });
        }
        (_, ["comments" | "notes", ..]) => {
            let (place, from) = match words {
                ["notes", ..] => (CommentPlace::Check, 1),
                [_, "on", "pr", ..] => (CommentPlace::PullRequest, 3),
                [_, "on", "line", ..] => {
                    let path = "src/a`b.rs".into();
                    (CommentPlace::Line { path, line: 12 }, 3)
                }
                _ => (CommentPlace::Issue, 1),
            };
            let comment = CommentRequest {
                role: named_role(role)?,
                text: kept(ArtifactKind::Feedback, &text(from)),
                place,
            };
            return Some(Input::RequestComment {
                invocation: invoke.id,
                comment,
            });
        }
        ("planner", ["plans", name, files @ ..]) => Outcome::Planned {
            plan: Plan {
                artifact: kept(ArtifactKind::Plan, name),
                summary: format!("Plan {name}"),
                files: if files.is_empty() {
                    vec!["a.rs".into()]
                } else {
                    files.iter().map(|f| (*f).into()).collect()
                },
            },
        },
        ("reviewer", [verdict @ ("approves" | "rejects"), ..]) => Outcome::Reviewed {
            review: Review {
                verdict: if *verdict == "approves" {
                    Verdict::Approve
                } else {
                    Verdict::Reject
                },
                artifact: kept(ArtifactKind::Review, &text(0)),
            },
        },
        ("implementer", ["is", "done"]) => Outcome::Implemented,
        ("tester", ["says", claim @ ("passed" | "failed")]) => Outcome::Interpreted {
            report: TestReport {
                claims_passed: *claim == "passed",
                artifact: kept(ArtifactKind::TestReport, &text(0)),
            },
        },
        (_, ["asks", ..]) => Outcome::Asked { question: text(1) },
        (_, ["wants", "to", "call", ..]) => Outcome::NeedsApproval {
            wish: Box::new(CallWish {
                tool: "bash".into(),
                call: Digest::of(text(3).as_bytes()),
                text: kept(ArtifactKind::Call, &text(3)),
                reason: "implementer-runs-commands: a person approves each command".into(),
            }),
        },
        (_, ["gives", "nothing"]) => Outcome::Failed {
            failure: AgentFailure::NoResult,
        },
        (_, ["gives", "nonsense"]) => Outcome::Failed {
            failure: AgentFailure::InvalidResult {
                reason: "no files".into(),
            },
        },
        (_, ["crashes"]) => Outcome::Failed {
            failure: AgentFailure::Crashed {
                reason: "exit 3".into(),
            },
        },
        (_, ["runs", "out", "of", limit]) => Outcome::Failed {
            failure: AgentFailure::LimitExceeded {
                limit: match *limit {
                    "time" => InvocationLimit::Time,
                    "tokens" => InvocationLimit::Tokens,
                    "calls" => InvocationLimit::ToolCalls,
                    _other => return None,
                },
            },
        },
        (_, ["breaks", "a", "rule"]) => Outcome::Violated {
            violation: "tried to read a secret".into(),
        },
        (_, ["is", "limited", time]) => Outcome::ProviderLimited {
            account: "acme".into(),
            until: world.now.after(millis(time)?),
        },
        (_, ["is", "stopped"]) => Outcome::Stopped,
        (_, ["is", "interrupted"]) => Outcome::Interrupted,
        _other => return None,
    };
    let report = InvocationReport {
        outcome,
        tools: ToolLogHead {
            calls: 3,
            head: Digest::of(b"tools"),
        },
        usage: Usage::default(),
        papers: None,
        purpose: None,
        saved: None,
    };
    Some(performed(invoke.id, Report::Invoked { report }))
}

fn tests(world: &World, words: &[&str]) -> Option<Input> {
    let asked = world.waiting(EffectKind::RunTests)?;
    let mut commit_tested = World::commit_of(&asked.effect)?;
    let ending = match words {
        ["exit", code] => Ending::Exited {
            code: code.parse().ok()?,
        },
        ["exit", "0", "on", "another", "commit"] => {
            commit_tested = commit(0xbad);
            Ending::Exited { code: 0 }
        }
        ["signal", signal] => Ending::Signalled {
            signal: signal.parse().ok()?,
        },
        ["time", "out"] => Ending::TimedOut,
        ["lost"] => Ending::Lost,
        ["not", "run"] => Ending::NotRun {
            reason: "`make` is not there".into(),
        },
        _other => return None,
    };
    let tests = TestRun {
        commit: commit_tested,
        tree: commit(0x77ee),
        command: spec().test_command,
        ending,
        output: kept(ArtifactKind::TestOutput, &words.join(" ")),
        time: Millis(5),
    };
    Some(performed(asked.id, Report::TestsRan { tests }))
}

fn diff(world: &World, words: &[&str]) -> Option<Input> {
    let inspect = world.waiting(EffectKind::InspectDiff)?;
    let Effect::InspectDiff { head, .. } = &inspect.effect else {
        return None;
    };
    let mut files = vec!["a.rs".to_owned()];
    let mut findings = vec![];
    let mut dependencies = None;
    let mut unshown = vec![];
    match words {
        ["clean"] => {}
        ["clean", "and", "too", "long"] => unshown.clone_from(&files),
        ["touches", path] => files.push((*path).to_owned()),
        ["touches", many, "others"] => {
            let many: usize = many.parse().ok()?;
            files.extend((0..many).map(|n| format!("other/{n}.rs")));
        }
        ["touches", path, "and", "is", "too", "long"] => {
            files.push((*path).to_owned());
            unshown.clone_from(&files);
        }
        ["has", "gitlink"] => findings.push(Finding::of_path(
            FindingKind::Gitlink,
            "a.rs",
            Severity::NeedsApproval,
        )),
        ["touches", "forbidden", path] => findings.push(Finding::of_path(
            FindingKind::ForbiddenPath,
            *path,
            Severity::Violation,
        )),
        ["has", "a", "secret"] => findings.push(Finding {
            line: 7,
            evidence: "GitHub token".into(),
            ..Finding::of_path(FindingKind::Secret, "a.rs", Severity::Violation)
        }),
        ["has", "hidden", "text"] => findings.push(Finding {
            line: 3,
            evidence: "let x = ⟨U+202E⟩`@ann`;".into(),
            ..Finding::of_path(FindingKind::HiddenText, "a.rs", Severity::NeedsApproval)
        }),
        ["changes", "the", "harness"] => findings.push(Finding {
            evidence: "runs when the tests are built".into(),
            ..Finding::of_path(FindingKind::Harness, "a.rs", Severity::NeedsApproval)
        }),
        ["adds", "dependency", name] => {
            findings.push(Finding {
                evidence: "1 added".into(),
                ..Finding::of_path(FindingKind::NewDependency, "a.rs", Severity::NeedsApproval)
            });
            dependencies = Some(kept(
                ArtifactKind::Dependencies,
                &format!("added cargo {name} 1 in a.rs\n"),
            ));
        }
        _other => return None,
    }
    let digest = Digest::of(format!("{head} {files:?}").as_bytes());
    let inspection = Inspection {
        class: ChangeClass::Documentation,
        digest,
        files,
        findings,
        rendered: kept(ArtifactKind::Diff, &format!("diff of {head}")),
        dependencies,
        unshown,
    };
    Some(performed(inspect.id, Report::DiffInspected { inspection }))
}

fn pull_request(world: &World, words: &[&str]) -> Option<Input> {
    let read = world.waiting(EffectKind::ReadPullRequest)?;
    let head = world.run().workspace.as_ref()?.head.clone();
    let pushed = world.run().workspace.as_ref()?.pushed.clone();
    let mut seen = PullRequestSnapshot {
        number: PullRequestNumber(9),
        state: PullRequestState::Open,
        head: pushed.clone().unwrap_or(head),
        head_repo: Some(RepoId(42)),
        base_head: world
            .run()
            .workspace
            .as_ref()
            .map(|workspace| workspace.base.clone()),
        review: None,
        failed_checks: vec![],
        checks_feedback: None,
        pending_checks: vec![],
    };
    match words {
        ["open"] => {}
        ["merged"] => {
            seen.state = PullRequestState::Merged {
                by: Some("bob".into()),
            }
        }
        ["merged", "from", "a", "fork"] => {
            seen.state = PullRequestState::Merged { by: None };
            seen.head_repo = Some(RepoId(666));
        }
        ["merged", "from", "nowhere"] => {
            seen.state = PullRequestState::Merged { by: None };
            seen.head_repo = None;
        }
        ["merged", "at", "another", "commit"] => {
            seen.state = PullRequestState::Merged {
                by: Some("bob".into()),
            };
            seen.head = commit(0xbad);
        }
        ["unmerged"] => seen.state = PullRequestState::Closed,
        ["changes", "requested", id, whereon @ ..] => {
            let commit = match whereon {
                [] => pushed,
                ["on", "another", "commit"] => Some(commit(0xbad)),
                ["on", "no", "commit"] => None,
                ["on", "commit", number] => Some(commit(number.parse().ok()?)),
                _other => return None,
            };
            seen.review = Some(HumanReview {
                id: id.parse().ok()?,
                by: "bob".into(),
                feedback: kept(ArtifactKind::Feedback, "rename it"),
                commit,
            });
        }
        ["checks", "failed", "on", "another", "commit"] => {
            seen.failed_checks = vec!["ci".into()];
            seen.head = commit(0xbad);
        }
        ["checks", "failed", names @ ..] => {
            seen.failed_checks = names.iter().map(|n| (*n).into()).collect();
            seen.checks_feedback = Some(kept(ArtifactKind::Feedback, "two tests are red"));
        }
        ["checks", "pending"] => seen.pending_checks = vec!["ci".into()],
        ["base", "moved"] => seen.base_head = Some(commit(0xba5f)),
        _other => return None,
    }
    Some(performed(read.id, Report::PullRequestRead { pull_request: seen }))
}

fn forge(world: &World, words: &[&str]) -> Option<Input> {
    let (event, subject) = match words {
        ["announces", "pr", number] => (
            "pull_request",
            NoticeSubject::PullRequest {
                number: PullRequestNumber(number.parse().ok()?),
            },
        ),
        ["announces", "review"] => (
            "pull_request_review",
            NoticeSubject::PullRequest {
                number: PullRequestNumber(9),
            },
        ),
        ["announces", "checks"] => (
            "check_suite",
            NoticeSubject::PullRequest {
                number: PullRequestNumber(9),
            },
        ),
        ["announces", "issue"] => (
            "issues",
            NoticeSubject::Issue {
                number: IssueNumber(7),
            },
        ),
        ["announces", "comment"] => (
            "issue_comment",
            NoticeSubject::Issue {
                number: IssueNumber(7),
            },
        ),
        ["announces", "push"] => ("push", NoticeSubject::Base),
        _other => return None,
    };
    let delivery = format!("d{}", world.seq);
    Some(Input::ForgeNoticed {
        notice: Notice {
            delivery,
            event: event.into(),
            subject,
        },
    })
}

fn operate(world: &World, who: &str, words: &[&str]) -> Option<Input> {
    let run = world.run.as_ref()?;
    let text = |from: usize| words.get(from..).unwrap_or_default().join(" ");
    let comment = |from: usize| Some(text(from)).filter(|text| !text.is_empty());
    let gate = run.gate();
    let subject = gate.map_or_else(|| Digest::of(b"nothing"), |gate| gate.subject.clone());
    let kind = gate.map_or(GateKind::Plan, |gate| gate.kind);
    let action = match words {
        ["approves", "something", "else"] => Action::Approve {
            gate: kind,
            subject: Digest::of(b"old"),
            comment: None,
        },
        ["approves", "diff"] => Action::Approve {
            gate: GateKind::Diff,
            subject,
            comment: None,
        },
        ["approves", ..] => Action::Approve {
            gate: kind,
            subject,
            comment: comment(1),
        },
        ["revises"] => Action::Revise {
            gate: kind,
            subject,
            feedback: kept(ArtifactKind::Feedback, ""),
        },
        ["revises", ..] => Action::Revise {
            gate: kind,
            subject,
            feedback: kept(ArtifactKind::Feedback, &text(1)),
        },
        ["rejects", ..] => Action::Reject {
            gate: kind,
            subject,
            comment: comment(1),
        },
        ["answers", ..] => {
            let question = match run.holds.get(HoldKind::Question) {
                Some(Hold::Question { id, .. }) => id.clone(),
                _other => effect_id("r1.1.0"),
            };
            Action::Answer {
                question,
                answer: kept(ArtifactKind::Feedback, &text(1)),
            }
        }
        ["pauses"] => Action::Pause,
        ["resumes"] => Action::Resume,
        ["cancels", ..] => Action::Cancel { comment: comment(1) },
        ["retries"] => Action::Retry,
        ["gives", "up", ..] => Action::Fail { comment: comment(2) },
        ["overrides", policy, tool, target, "for", minutes, "because", ..] => Action::GrantRelief {
            scope: ReliefScope {
                policy: (*policy).to_owned(),
                role: Role::Implementer,
                tool: (*tool).to_owned(),
                target: (*target).to_owned(),
            },
            justification: text(7),
            until: world.now.after(Millis::minutes(minutes.parse().ok()?)),
        },
        ["revokes", number] => Action::RevokeRelief {
            number: number.parse().ok()?,
        },
        ["prioritizes", priority] => Action::Reprioritize {
            priority: Priority::new(priority.parse().ok()?)?,
        },
        _other => return None,
    };
    Some(Input::Operate {
        by: operator(who),
        action,
    })
}
