//! Reads the scenario format: one TOML table per part, one per step, exactly one action in each step.
//!
//! This module does not know what a scenario is played for.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::FaultKind;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft};
use conductor_domain::time::Millis;
use conductor_port::agent::GithubCall;
use serde::Deserialize;
use toml::Spanned;

use super::{Action, Call, Exhausted, Expect, Invalid, Part, Scenario, Step};

/// The one version of the format.
const SCHEMA: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    #[serde(default)]
    exhausted: Exhausted,
    #[serde(default)]
    plan: Vec<PartTable>,
    #[serde(default)]
    review_plan: Vec<PartTable>,
    #[serde(default)]
    implement: Vec<PartTable>,
    #[serde(default)]
    interpret_tests: Vec<PartTable>,
    #[serde(default)]
    review_implementation: Vec<PartTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartTable {
    context: Option<Vec<ArtifactKind>>,
    #[serde(default)]
    prompt_contains: Vec<String>,
    #[serde(default)]
    prompt_lacks: Vec<String>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    ignores_stop: bool,
    #[serde(default)]
    step: Vec<Spanned<StepTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    times: Option<NonZeroU32>,
    expect: Option<Expect>,
    say: Option<String>,
    view: Option<String>,
    list_files: Option<String>,
    create_file: Option<Content>,
    str_replace: Option<Replacement>,
    write: Option<Content>,
    bash: Option<String>,
    comment: Option<String>,
    github: Option<GithubTable>,
    submit_plan: Option<PlanDraft>,
    submit_review: Option<ReviewDraft>,
    submit_test_report: Option<TestReportDraft>,
    ask_human: Option<String>,
    sleep_ms: Option<u64>,
    crash: Option<String>,
    hang: Option<Yes>,
    exit: Option<Yes>,
    provider_limit: Option<Limit>,
    fault: Option<FaultTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    path: String,
    old: String,
    new: String,
}

/// A call of a tool for the forge; the tool takes what it needs of the rest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GithubTable {
    tool: GithubTool,
    number: Option<u64>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    line: u32,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum GithubTool {
    GetIssue,
    ListComments,
    GetPullRequest,
    CommentIssue,
    CommentPullRequest,
    ReviewComment,
    UpdateCheckRun,
    UpdateProjectFields,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    account: String,
    seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultTable {
    kind: FaultWord,
    what: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FaultWord {
    Transient,
    Conflict,
    Permanent,
}

/// `true`, for actions that have nothing else to say.
#[derive(Deserialize)]
#[serde(try_from = "bool")]
struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value {
            Ok(Self)
        } else {
            Err("leave it out instead of writing `false`")
        }
    }
}

pub(super) fn read(text: &str) -> Result<Scenario, Invalid> {
    let file: File = toml::from_str(text).map_err(|error| {
        let message = error.message().to_owned();
        invalid(text, error.span().unwrap_or_default(), message)
    })?;
    if *file.schema.get_ref() != SCHEMA {
        let message = format!(
            "schema {} is not known, this version reads schema {SCHEMA}",
            file.schema.get_ref()
        );
        return Err(invalid(text, file.schema.span(), message));
    }
    let parts = |tables: Vec<PartTable>| -> Result<Vec<Part>, Invalid> {
        tables.into_iter().map(|table| part(text, table)).collect()
    };
    Ok(Scenario {
        exhausted: file.exhausted,
        plan: parts(file.plan)?,
        review_plan: parts(file.review_plan)?,
        implement: parts(file.implement)?,
        interpret_tests: parts(file.interpret_tests)?,
        review_implementation: parts(file.review_implementation)?,
    })
}

fn part(text: &str, table: PartTable) -> Result<Part, Invalid> {
    let steps: Result<Vec<Step>, Invalid> = table.step.into_iter().map(|table| step(text, table)).collect();
    Ok(Part {
        context: table.context,
        prompt_contains: table.prompt_contains,
        prompt_lacks: table.prompt_lacks,
        tokens: table.tokens,
        ignores_stop: table.ignores_stop,
        steps: steps?,
    })
}

fn step(text: &str, table: Spanned<StepTable>) -> Result<Step, Invalid> {
    let span = table.span();
    let table = table.into_inner();
    let times = table.times.map_or(1, NonZeroU32::get);
    let action = only_action(table).map_err(|message| invalid(text, span.clone(), message.to_owned()))?;
    Ok(Step {
        line: place(text, span.start).0,
        times,
        action,
    })
}

fn github(table: GithubTable) -> GithubCall {
    let GithubTable {
        tool,
        number,
        text,
        path,
        line,
        fields,
    } = table;
    match tool {
        GithubTool::GetIssue => GithubCall::GetIssue { number },
        GithubTool::ListComments => GithubCall::ListComments { number },
        GithubTool::GetPullRequest => GithubCall::GetPullRequest { number },
        GithubTool::CommentIssue => GithubCall::CommentIssue { number, text },
        GithubTool::CommentPullRequest => GithubCall::CommentPullRequest { number, text },
        GithubTool::ReviewComment => GithubCall::ReviewComment {
            number,
            path,
            line,
            text,
        },
        GithubTool::UpdateCheckRun => GithubCall::UpdateCheckRun { text },
        GithubTool::UpdateProjectFields => GithubCall::UpdateProjectFields { fields },
    }
}

/// Takes the one action of a step.
fn only_action(table: StepTable) -> Result<Action, &'static str> {
    let calls = [
        table.view.map(|path| Call::View { path }),
        table.list_files.map(|path| Call::ListFiles { path }),
        table.create_file.map(|file| Call::CreateFile {
            path: file.path,
            content: file.content,
        }),
        table.str_replace.map(|change| Call::StrReplace {
            path: change.path,
            old: change.old,
            new: change.new,
        }),
        table.write.map(|file| Call::Write {
            path: file.path,
            content: file.content,
        }),
        table.bash.map(|command| Call::Bash { command }),
        table
            .comment
            .map(|text| Call::Github(GithubCall::CommentIssue { number: None, text })),
        table.github.map(|table| Call::Github(github(table))),
        table.submit_plan.map(Call::SubmitPlan),
        table.submit_review.map(Call::SubmitReview),
        table.submit_test_report.map(Call::SubmitTestReport),
        table.ask_human.map(|question| Call::AskHuman { question }),
    ];
    let others = [
        table.say.map(Action::Say),
        table.sleep_ms.map(|length| Action::Sleep(Millis(length))),
        table.crash.map(Action::Crash),
        table.hang.map(|Yes| Action::Hang),
        table.exit.map(|Yes| Action::Exit),
        table.provider_limit.map(|limit| {
            let length = Millis(limit.seconds.saturating_mul(1000));
            Action::ProviderLimit {
                account: limit.account,
                length,
            }
        }),
        table.fault.map(|fault| Action::Fault {
            kind: kind(&fault.kind),
            what: fault.what,
        }),
    ];
    let mut calls = calls.into_iter().flatten();
    let mut others = others.into_iter().flatten();
    match (calls.next(), others.next(), calls.next(), others.next()) {
        (Some(call), None, None, None) => {
            let expect = table.expect.unwrap_or(if matches!(call, Call::AskHuman { .. }) {
                Expect::Stop
            } else {
                Expect::Done
            });
            Ok(Action::Call { call, expect })
        }
        (None, Some(action), None, None) if table.expect.is_none() => Ok(action),
        (None, Some(_), None, None) => Err("`expect` stands beside an action that calls no tool"),
        (None, None, _, _) => Err("a step without an action"),
        (Some(_), _, _, _) | (None, Some(_), _, _) => Err("a step with more than one action"),
    }
}

fn kind(word: &FaultWord) -> FaultKind {
    match word {
        FaultWord::Transient => FaultKind::Transient { retry_after: None },
        FaultWord::Conflict => FaultKind::Conflict,
        FaultWord::Permanent => FaultKind::Permanent,
    }
}

fn invalid(text: &str, span: Range<usize>, message: String) -> Invalid {
    let (line, column) = place(text, span.start);
    Invalid {
        line,
        column,
        message,
    }
}

/// Tells line and column of a byte, both from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        1 + before.matches('\n').count(),
        1 + before[line_start..].chars().count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, line: usize, column: usize, message: &str) {
        let invalid = read(text).unwrap_err();
        assert!(invalid.message.contains(message), "{invalid}");
        assert_eq!((invalid.line, invalid.column), (line, column), "{invalid}");
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        check("", 1, 1, "missing field `schema`");
        check("schema = 1\n= 2", 2, 1, "");
        check("schema = 2\n", 1, 10, "schema 2 is not known");
        check("schema = 1\nplanner = []\n", 2, 1, "unknown field `planner`");
        check(
            "schema = 1\nexhausted = 'never'\n",
            2,
            13,
            "unknown variant `never`",
        );
        check(
            "schema = 1\n[[plan]]\nsteps = []\n",
            3,
            1,
            "unknown field `steps`",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nsya = 'x'\n",
            4,
            1,
            "unknown field `sya`",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\n",
            3,
            1,
            "a step without an action",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nsay = 'x'\nview = 'y'\n",
            3,
            1,
            "more than one action",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nbash = 'x'\nview = 'y'\n",
            3,
            1,
            "more than one action",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nsay = 'x'\nexpect = 'done'\n",
            3,
            1,
            "calls no tool",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nsay = 'x'\ntimes = 0\n",
            5,
            9,
            "nonzero",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nhang = false\n",
            4,
            8,
            "leave it out",
        );
        check(
            "schema = 1\n[[plan]]\n[[plan.step]]\nview = 'x'\nexpect = 'luck'\n",
            5,
            10,
            "unknown variant `luck`",
        );
        let plan = "schema = 1\n[[plan]]\n[[plan.step]]\nsubmit_plan = { summary = 's', approach = 'a', \
                    files = [], extra = 1 }\n";
        check(plan, 4, 60, "unknown field `extra`");
    }

    #[test]
    fn parts_are_played_in_order_and_the_last_one_repeats_unless_it_may_not() {
        use conductor_domain::invocation::Purpose;
        let parts = "schema = 1\n[[plan]]\ntokens = 1\n[[plan]]\ntokens = 2\n";
        let tokens = |text: &str, attempt| {
            let scenario = read(text).unwrap();
            scenario.part(Purpose::Plan, attempt).map(|part| part.tokens)
        };
        assert_eq!(
            [0, 1, 2, 3, u32::MAX].map(|n| tokens(parts, n)),
            [1, 1, 2, 2, 2].map(Some)
        );
        let strict = parts.replace("schema = 1", "schema = 1\nexhausted = 'fail'");
        assert_eq!([1, 2, 3].map(|n| tokens(&strict, n)), [Some(1), Some(2), None]);
        assert_eq!(read(parts).unwrap().part(Purpose::Implement, 1), None);
    }

    #[test]
    fn a_step_knows_its_line() {
        let text = "schema = 1\n[[implement]]\n[[implement.step]]\nbash = 'x'\n\n[[implement.step]]\nask_human = '?'\n";
        let scenario = read(text).unwrap();
        let expected = [
            Step {
                line: 3,
                times: 1,
                action: Action::Call {
                    call: Call::Bash { command: "x".into() },
                    expect: Expect::Done,
                },
            },
            Step {
                line: 6,
                times: 1,
                action: Action::Call {
                    call: Call::AskHuman { question: "?".into() },
                    expect: Expect::Stop,
                },
            },
        ];
        assert_eq!(scenario.implement[0].steps, expected);
    }
}
