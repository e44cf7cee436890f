//! Shows a run whole: header, why it stands still, what is asked of a person, plan, tests, and the next command.
//!
//! Texts of others are shown byte for byte, hidden and look-alike characters as visible codes with a count (S-48), nothing cut (S-49).
//! This module does not know where the run comes from.

use std::fmt::Write as _;

use conductor_domain::id::EffectId;
use conductor_domain::time::{Millis, Timestamp};
use conductor_web::api::{DenialView, GateView, RunDetail, TextView};
use conductor_web::visible::{self, Visible};

use crate::show::fold::folded;
use crate::show::words::count;
use crate::show::{state, time};

/// Shows everything about a run in so many columns; `typed` says how a command is typed here.
pub(crate) fn detail(
    detail: &RunDetail,
    now: Timestamp,
    room: Option<usize>,
    typed: impl Fn(&str) -> String,
) -> String {
    let run = &detail.run;
    let mut text = String::new();
    let title = visible::line(&run.title);
    let mut field = |name: &str, value: String| {
        text.push_str(&folded(
            &value,
            room,
            &format!("{name:<14}"),
            &format!("{:14}", ""),
        ));
    };
    field("run", format!("{}  {}", run.id, state::state(run)));
    field("issue", format!("{}#{}  {title}", run.repo, run.issue));
    field("project", format!("{}, priority {}", run.project, run.priority));
    field("branch", detail.branch.clone());
    if !detail.ports.is_empty() {
        field("ports", detail.ports.join(", "));
    }
    for skill in &detail.skills {
        let roles: Vec<String> = skill.roles.iter().map(ToString::to_string).collect();
        let commit = skill.commit.as_deref().and_then(|commit| commit.get(..12));
        let commit = commit.map(|commit| format!(" at {commit}")).unwrap_or_default();
        let source = visible::line(&skill.source);
        let said = format!(
            "{} {} for {}, from {source}{commit}",
            skill.name,
            skill.content.short(),
            roles.join(", ")
        );
        field("skill", said);
    }
    field("started", time::ago(run.created_at, now));
    field(
        "changed",
        format!(
            "{} ({})",
            time::ago(run.updated_at, now),
            count(run.events, "event")
        ),
    );
    if let Some(pull_request) = &detail.pull_request {
        let head = pull_request.head.get(..12).unwrap_or_default();
        field(
            "pull request",
            format!(
                "#{} {} at {head}",
                pull_request.number,
                visible::line(&pull_request.url)
            ),
        );
    }
    if let Some(reason) = &run.ended_because {
        field("ended", visible::line(reason));
    }
    let name = if state::is_paused(run) {
        "stands still"
    } else {
        "waits for"
    };
    field(name, detail.waits_for.clone());
    for question in detail.holds.iter().filter_map(|hold| hold.question.as_ref()) {
        field("question", question.to_string());
    }
    if !detail.under_way.is_empty() {
        field("under way", detail.under_way.join(", "));
    }
    if let Some(saved) = &detail.saved {
        field("saved work", visible::line(saved));
    }
    match detail.tests.as_slice() {
        [] => field("tests", "not run".to_owned()),
        tests => {
            for test in tests {
                let symbol = if test.passed { "✔" } else { "✘" };
                let took = time::length(test.time);
                field(
                    "tests",
                    format!("{symbol} {} ({took})", visible::line(&test.said)),
                );
            }
        }
    }
    for denial in &detail.denials {
        field("denied", denied(denial, &typed));
    }
    if !detail.phases.is_empty() {
        field("phases", phases(detail, now));
    }
    match (&detail.gate, &detail.plan) {
        (Some(open), _) => text.push_str(&gate(open, room)),
        (None, Some(plan)) => text.push_str(&framed(plan, room)),
        (None, None) => {}
    }
    if !detail.next.is_empty() {
        text.push_str("\nnext:\n");
        for step in &detail.next {
            let _string = writeln!(text, "  {}\n    # {}", typed(&step.command), step.what);
        }
    }
    text
}

/// What was asked of the network and not let out, with the command that lets it out next time (BEY-6).
fn denied(denial: &DenialView, typed: impl Fn(&str) -> String) -> String {
    let mut text = visible::line(&denial.target);
    if let Some(command) = &denial.command {
        let _string = write!(text, " to `{}`", visible::line(command));
    }
    let _string = write!(text, ": {}", denial.reason);
    match &denial.request {
        Some(request) if request.granted => text.push_str("; granted since, from the next sandbox on"),
        Some(request) => {
            let _string = write!(text, "\n{}   # {}", typed(&request.command), request.risk);
        }
        None => {}
    }
    text
}

/// Where the time went; an open run is in its last phase until now, and not until something last happened.
fn phases(detail: &RunDetail, now: Timestamp) -> String {
    let last = detail.phases.len().saturating_sub(1);
    let spans = detail.phases.iter().enumerate().map(|(place, span)| {
        let is_going_on = place == last && !detail.run.ended;
        let length = if is_going_on {
            now.since(span.from)
        } else {
            Millis(span.ms)
        };
        format!("{} {}", span.name.replace('_', " "), time::length(length))
    });
    spans.collect::<Vec<_>>().join(" → ")
}

/// Shows what a gate asks to approve, in so many columns.
pub(crate) fn gate(gate: &GateView, room: Option<usize>) -> String {
    let mut text = format!("\nto be approved: {} {}\n", gate.kind, gate.subject);
    for finding in &gate.findings {
        text.push_str(&folded(&visible::line(finding), room, "  ! ", "    "));
    }
    for shown in &gate.shown {
        text.push_str(&framed(shown, room));
    }
    text
}

/// A question of an agent, which an answer names.
pub(crate) fn question(id: &EffectId, words: &str, room: Option<usize>) -> String {
    format!("\nto be answered: {id}\n{}", barred(&visible::text(words), room))
}

fn framed(shown: &TextView, room: Option<usize>) -> String {
    let mut text = format!("\n── {} {} ", shown.kind.replace('_', " "), shown.digest.short());
    text.extend(std::iter::repeat_n('─', 40));
    text.push('\n');
    if shown.truncated {
        text.push_str("! this text was cut when it was kept\n");
    }
    text.push_str(&barred(&visible::text(&shown.text), room));
    text
}

/// Words of somebody else, each row behind a bar, so that none passes for ours; `┆` goes on with the line above.
fn barred(visible: &Visible, room: Option<usize>) -> String {
    let mut text = String::new();
    let told = visible.told();
    if !told.is_empty() {
        let _string = writeln!(text, "! {told} shown as ⟨U+…⟩");
    }
    for line in visible.text.lines() {
        text.push_str(&folded(line, room, "│ ", "┆ "));
    }
    text
}

#[cfg(test)]
mod tests {
    use conductor_domain::digest::Digest;

    use super::*;

    fn shown(waits_for: &str, held: bool, ended: bool, now: Timestamp) -> String {
        let detail_of_it = serde_json::json!({
            "run": {
                "id": "r-1", "project": "p", "repo": "o/r", "repo_id": 7, "issue": 1, "title": "T",
                "phase": if ended { "cancelled" } else { "planning" }, "status": "", "held": held,
                "needs_human": held, "ended": ended, "ended_because": ended.then_some("by ann: no"),
                "priority": 5, "pull_request": null, "events": 3, "created_at": 0, "updated_at": 0,
            },
            "branch": "b", "waits_for": waits_for, "next": [], "allowed": [], "holds": [], "gate": null,
            "plan": null, "tests": [], "pull_request": null, "attempts": 0, "plans": 0, "under_way": [],
            "phases": [{ "name": "pending", "from": 0, "ms": 1000 }, { "name": "last", "from": 1_000_000, "ms": 5 }],
            "cleaned_up": ended, "saved": null,
        });
        detail(
            &serde_json::from_value(detail_of_it).expect("a detail"),
            now,
            None,
            str::to_owned,
        )
    }

    /// RUN-1a, RUN-12: a paused run reads as paused, an ended one says why, an open one is in its phase until now.
    #[test]
    fn a_run_says_how_it_stands_and_since_when() {
        let now = Timestamp(3_601_000_000);
        let open = shown("the Planner", false, false, now);
        assert!(open.contains("waits for     the Planner\n"), "{open}");
        assert!(open.contains("pending 1.0 s → last 1 h 0 min\n"), "{open}");
        let paused = shown("paused: push: no; a person must act", true, false, now);
        assert!(
            paused.contains("stands still  paused: push: no; a person must act\n"),
            "{paused}"
        );
        assert!(paused.contains("planning (paused, needs you)"), "{paused}");
        let ended = shown("nothing: it is over", false, true, now);
        assert!(ended.contains("ended         by ann: no\n"), "{ended}");
        assert!(ended.contains("last 5 ms\n"), "{ended}");
    }

    /// S-48, BEY-4: a question names itself, and no line of it passes for one of ours.
    #[test]
    fn a_question_stands_behind_a_bar() {
        let id = EffectId::parse("r1.8.1").expect("an id");
        assert_eq!(
            question(&id, "Which colour?\nhint: \u{202e}say yes", None),
            "\nto be answered: r1.8.1\n! 1 hidden character shown as ⟨U+…⟩\n│ Which colour?\n│ hint: ⟨U+202E⟩say yes\n"
        );
    }

    /// S-48: a plan cannot hide words from its reader, nor draw on the terminal.
    #[test]
    fn hidden_characters_are_shown_and_counted() {
        let text = "do it\u{202e}\u{1b}[2K\nthen th\u{456}s";
        let shown = TextView {
            kind: "plan".into(),
            digest: Digest::of(b"x"),
            truncated: false,
            text: text.into(),
        };
        let framed = framed(&shown, None);
        assert!(
            framed.contains("! 2 hidden characters and 1 look-alike character shown as"),
            "{framed}"
        );
        assert!(
            framed.contains("│ do it⟨U+202E⟩⟨U+001B⟩[2K\n│ then th⟨U+0456⟩s\n"),
            "{framed}"
        );
    }
    /// S-48: no word of another stands at the terminal's edge, however wide the terminal is.
    #[test]
    fn a_long_line_stays_behind_its_bar() {
        let hostile = format!("{}The plan was approved already.", " ".repeat(30));
        let shown = TextView {
            kind: "plan".into(),
            digest: Digest::of(b"x"),
            truncated: false,
            text: format!("{hostile}\n\tword\n{}", "\u{5b57}".repeat(20)),
        };
        let framed = framed(&shown, Some(32));
        let rows: Vec<&str> = framed.lines().skip(2).collect();
        for row in &rows {
            assert!(row.starts_with("│ ") || row.starts_with("┆ "), "{row}");
            assert!(console::measure_text_width(row) <= 32, "{row}");
        }
        assert_eq!(
            rows.iter().filter(|row| row.starts_with('│')).count(),
            3,
            "{rows:#?}"
        );
    }
}
