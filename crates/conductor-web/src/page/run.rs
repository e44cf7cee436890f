//! One run: where it stands, what it asks of a person, what was decided, tested and written.
//!
//! What is to be approved stands there whole, with the digest that an answer names (S-47, S-49). This module does not
//! know what the run accepts: the reader asked the run machine.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::gate::GateKind;
use conductor_domain::staff::Rank;
use conductor_domain::time::{Millis, Timestamp};

use crate::actor::Actor;
use crate::api::{EventView, GrantRequest, RunDetail, TextView, WriteView};
use crate::door::Door;
use crate::extract::NamedRun;
use crate::page::calls::{self, Call};
use crate::page::change::Change;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::{Line, Moment};
use crate::page::overrides::Override;
use crate::page::trouble::Trouble;
use crate::reader::CallsWanted;
use crate::render::Piece;
use crate::render::code::{self, Language};
use crate::render::markdown::Prose;
use crate::visible;
use crate::words::{sentence, state, time};

/// How far back the page's story goes; the log has all of it.
const STORY: u64 = 600;

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    frame: Frame,
    shown: Shown,
    story: Vec<Told>,
    is_cut: bool,
    writes: Vec<Write>,
    change: Option<Change>,
    /// The newest calls that policy stopped, and the newest of all.
    stopped: Vec<Call>,
    calls: Vec<Call>,
}

/// A run as a page shows it; the inbox shows the same without the story.
pub(crate) struct Shown {
    pub(crate) line: Line,
    pub(crate) started: Moment,
    pub(crate) events: u64,
    pub(crate) phase: String,
    pub(crate) branch: String,
    pub(crate) waits: String,
    pub(crate) gate: Option<Gate>,
    pub(crate) holds: Vec<String>,
    pub(crate) question: Option<String>,
    pub(crate) allowed: Vec<String>,
    pub(crate) plan: Option<Reading>,
    pub(crate) denials: Vec<Denial>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) is_open: bool,
    pub(crate) tests: Vec<Test>,
    pub(crate) pull_request: Option<PullRequest>,
    pub(crate) phases: Vec<Span>,
    pub(crate) saved: String,
}

/// An open gate.
pub(crate) struct Gate {
    pub(crate) asks: &'static str,
    pub(crate) subject: String,
    pub(crate) opened: Moment,
    pub(crate) findings: Vec<String>,
    pub(crate) texts: Vec<Text>,
    pub(crate) since: Option<Since>,
}

/// What is different since a person was last asked the same.
pub(crate) struct Since {
    pub(crate) asked: Moment,
    pub(crate) texts: Vec<Text>,
}

/// A text of somebody else, with everything hidden in it made visible (S-48).
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) hidden: String,
    pub(crate) is_cut: bool,
    pub(crate) lines: Vec<TextLine>,
}

/// A text as its markdown means it, for reading, and as it is; what is to be answered is shown as it is alone (S-47).
pub(crate) struct Reading {
    pub(crate) prose: Prose,
    pub(crate) text: Text,
}

/// A line of a text, with the class of colour that it has in a change.
pub(crate) struct TextLine {
    pub(crate) class: &'static str,
    pub(crate) pieces: Vec<Piece>,
}

/// A request of a sandbox that was not let out.
pub(crate) struct Denial {
    pub(crate) at: Moment,
    pub(crate) target: String,
    pub(crate) reason: String,
    pub(crate) command: String,
    pub(crate) request: Option<GrantRequest>,
}

/// One run of the test command.
pub(crate) struct Test {
    pub(crate) class: &'static str,
    pub(crate) symbol: &'static str,
    pub(crate) said: String,
    pub(crate) took: String,
    pub(crate) output: String,
}

/// The pull request.
pub(crate) struct PullRequest {
    pub(crate) number: u64,
    /// Absent where the forge gave an address that is none of the web's.
    pub(crate) url: Option<String>,
    pub(crate) head: String,
}

/// A stay in one phase.
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) took: String,
}

/// One thing that happened.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) at: Moment,
    pub(crate) text: String,
}

struct Write {
    at: Moment,
    kind: String,
    target: String,
    decision: String,
    reason: String,
    result: String,
}

impl Shown {
    /// Puts a run into the words of a page.
    pub(crate) fn of(detail: RunDetail, now: Timestamp) -> Self {
        let run = &detail.run;
        let gate = detail.gate.map(|gate| Gate {
            asks: match gate.kind {
                GateKind::Plan => "Is this plan right?",
                GateKind::Diff => "May this change leave?",
                GateKind::Call => "May this call be made?",
            },
            subject: gate.subject.to_string(),
            opened: Moment::of(gate.opened_at, now),
            findings: gate
                .findings
                .iter()
                .map(|finding| visible::line(finding))
                .collect(),
            texts: gate.shown.iter().map(Text::of).collect(),
            since: gate.since.map(|since| Since {
                asked: Moment::of(since.asked_at, now),
                texts: since.changes.iter().map(Text::of_change).collect(),
            }),
        });
        Self {
            line: Line::of(run, now),
            started: Moment::of(run.created_at, now),
            events: run.events,
            phase: run.phase.clone(),
            branch: visible::line(&detail.branch),
            waits: if detail.cleaned_up {
                "over".to_owned()
            } else {
                visible::line(&state::waits(run, &detail.waits_for))
            },
            holds: detail
                .holds
                .iter()
                .map(|hold| visible::line(&hold.text))
                .collect(),
            question: detail
                .holds
                .iter()
                .find_map(|hold| hold.question.as_ref().map(ToString::to_string)),
            allowed: detail.allowed,
            // What stands in the gate is not shown a second time below it.
            plan: detail.plan.filter(|_| gate.is_none()).map(|plan| Reading {
                prose: Prose::of(&plan.text),
                text: Text::of(&plan),
            }),
            gate,
            denials: detail
                .denials
                .into_iter()
                .map(|denial| Denial {
                    at: Moment::of(denial.at, now),
                    target: visible::line(&denial.target),
                    reason: visible::line(&denial.reason),
                    command: denial.command.as_deref().map(visible::line).unwrap_or_default(),
                    request: denial.request,
                })
                .collect(),
            overrides: detail
                .overrides
                .iter()
                .map(|granted| Override::of(granted, now))
                .collect(),
            is_open: !run.ended,
            tests: detail
                .tests
                .iter()
                .map(|test| Test {
                    class: if test.passed { "good" } else { "bad" },
                    symbol: if test.passed { "✔" } else { "✘" },
                    said: visible::line(&test.said),
                    took: time::length(test.time),
                    output: test.output.to_string(),
                })
                .collect(),
            pull_request: detail.pull_request.map(|pull_request| PullRequest {
                number: pull_request.number,
                url: Some(pull_request.url).filter(|url| is_web(url)),
                head: pull_request.head,
            }),
            phases: detail
                .phases
                .iter()
                .map(|span| Span {
                    name: span.name.replace('_', " "),
                    took: time::length(Millis(span.ms)),
                })
                .collect(),
            saved: detail.saved.as_deref().map(visible::line).unwrap_or_default(),
        }
    }

    /// Leaves out what whoever looks may not do.
    pub(crate) fn to(mut self, rank: Rank) -> Self {
        if rank < Rank::Operator {
            self.allowed.clear();
            self.question = None;
        }
        self
    }

    /// Tells whether an action would be accepted now.
    pub(crate) fn may(&self, action: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == action)
    }
}

impl Text {
    /// Makes a text visible and takes it apart by lines.
    pub(crate) fn of(text: &TextView) -> Self {
        Self::shown(text, text.kind == "diff")
    }

    /// The same for a change of a text.
    fn of_change(text: &TextView) -> Self {
        Self::shown(text, true)
    }

    fn shown(text: &TextView, is_change: bool) -> Self {
        let shown = visible::text(&text.text);
        let lines = if is_change {
            change(&shown.text)
        } else {
            let plain = |line| TextLine {
                class: "",
                pieces: vec![Piece::plain(line)],
            };
            shown.text.lines().map(plain).collect()
        };
        Self {
            name: text.kind.replace('_', " "),
            digest: text.digest.to_string(),
            hidden: shown.told(),
            is_cut: text.truncated,
            lines,
        }
    }
}

/// Takes a change apart: whole lines are added, removed or the same, and code in them has its colours.
pub(crate) fn change(text: &str) -> Vec<TextLine> {
    let mut language = code::PLAIN;
    // `---` and `+++` are headers between the name of a file and its first place; after it, `+++ x` is an added `++ x`.
    let mut is_head = true;
    let take = |line: &str| {
        let class = class_of(line);
        let sign = line.as_bytes().first();
        is_head = match sign {
            Some(b'@' | b'\\' | b' ') => false,
            Some(b'+' | b'-') | None => is_head,
            Some(_) => true,
        };
        let header = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "));
        if let Some(path) = header.filter(|_| is_head) {
            if path != "/dev/null" {
                language = Language::of(path);
            }
            return TextLine {
                class: "place",
                pieces: vec![Piece::plain(line)],
            };
        }
        if !matches!(sign, Some(b'+' | b'-' | b' ')) {
            return TextLine {
                class,
                pieces: vec![Piece::plain(line)],
            };
        }
        let (sign, code) = line.split_at(1);
        let mut pieces = vec![Piece::plain(sign)];
        pieces.extend(code::pieces(code, language));
        TextLine { class, pieces }
    };
    text.lines().map(take).collect()
}

fn class_of(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        [b'@', b'@', ..] => "place",
        _ => "",
    }
}

/// Tells whether an address may stand in a link: a forge cannot make ours run a script, nor show another than it leads to.
fn is_web(url: &str) -> bool {
    let is_plain = !url.contains(char::is_whitespace) && visible::text(url).text == url;
    (url.starts_with("https://") || url.starts_with("http://")) && is_plain
}

/// Shows a run.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let detail = door.reader.run(&id).await?;
    let first = detail.run.events.saturating_sub(STORY);
    let records = door.reader.events(&id, first, u32::MAX).await?.events;
    let writes = door.reader.writes(&id).await?.writes;
    let calls = async |stopped: bool| {
        let wanted = CallsWanted {
            stopped,
            after: None,
            limit: calls::LAST,
        };
        door.reader.calls(&id, &wanted).await
    };
    let (stopped, calls) = (calls(true).await?, calls(false).await?);
    let change = door.reader.change(&id, None).await?;
    let asks_for_the_change = detail
        .gate
        .as_ref()
        .is_some_and(|gate| gate.kind == GateKind::Diff);
    let mut frame = Frame::of(&door, &actor, Section::Runs, format!("Run {id}")).await?;
    // A run that gave everything back says nothing more itself.
    if !detail.cleaned_up {
        frame.live = format!("/runs/{id}/live?after={}", detail.run.events);
    }
    Ok(page(&RunPage {
        frame,
        story: story(&records, now),
        is_cut: first > 0,
        writes: writes.into_iter().map(|write| write_of(write, now)).collect(),
        // What is asked about at a gate stands there.
        change: change.filter(|_| !asks_for_the_change).map(Change::briefly),
        stopped: Call::all(stopped, now),
        calls: Call::all(calls, now),
        shown: Shown::of(detail, now).to(actor.rank),
    }))
}

/// Tells records as a story, newest first.
pub(crate) fn story(records: &[EventView], now: Timestamp) -> Vec<Told> {
    let tell = |record: &EventView| {
        Some(Told {
            at: Moment::of(record.at, now),
            text: sentence::of(record)?,
        })
    };
    let mut told: Vec<Told> = records.iter().filter_map(tell).collect();
    told.reverse();
    told
}

fn write_of(write: WriteView, now: Timestamp) -> Write {
    Write {
        at: Moment::of(write.at, now),
        kind: visible::line(&write.kind.replace('_', " ")),
        target: visible::line(&write.target),
        decision: visible::line(&write.decision),
        reason: visible::line(&write.reason),
        result: visible::line(&write.result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-49: an added or removed line is shown as such, whatever it looks like.
    #[test]
    fn no_line_of_a_change_passes_for_a_header() {
        let text = [
            "changed a.rs",
            "--- a/a.rs",
            "+++ b/a.rs",
            "@@ -1 +1,2 @@",
            "--- b/a.rs",
            "\\ No newline at end of file",
            "+++ /dev/null",
            "+fn x",
            " same",
            "changed sub",
            "-submodule 1",
            "added file b.py",
            "--- /dev/null",
            "+++ b/b.py",
            "@@ -0,0 +1 @@",
            "+def x",
        ]
        .join("\n");
        let shown: Vec<(&str, String)> = change(&text)
            .into_iter()
            .map(|line| {
                let word = line.pieces.iter().find(|piece| piece.class == "word");
                (line.class, word.map_or(String::new(), |word| word.text.clone()))
            })
            .collect();
        let expected = [
            ("", ""),
            ("place", ""),
            ("place", ""),
            ("place", ""),
            ("removed", ""),
            ("", ""),
            ("added", ""),
            ("added", "fn"),
            ("", ""),
            ("", ""),
            ("removed", ""),
            ("", ""),
            ("place", ""),
            ("place", ""),
            ("place", ""),
            ("added", "def"),
        ];
        let expected: Vec<(&str, String)> = expected.map(|(class, word)| (class, word.to_owned())).into();
        assert_eq!(shown, expected);
    }
}
