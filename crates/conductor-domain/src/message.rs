//! What Conductor says at the forge, and the form it says it in (GH-5).
//!
//! First line `[Conductor | <Role> | run:<id>] <headline>`, then markdown, then an optional `<details>` of key/values,
//! then a link to the run, then a hidden marker that finds the message again after an ambiguous failure. Agent text
//! is made harmless on the way: it cannot start a header, hide a marker, or call people by name.
//! This module does not know how a message is sent.

mod foreign;

pub use foreign::{code, harmless, is_hidden, visible};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::digest::Digest;
use crate::id::{EffectId, RunId};
use crate::role::{Role, Speaker};

use foreign::{CODE_OPENS, harmless_line};

/// The longest text that the forge takes; one more byte is refused there with 422.
pub const MAX_BODY: usize = 65_536;
/// The longest text of an agent in one message.
const MAX_AGENT_TEXT: usize = 48_000;
/// The longest note of an agent in a check run.
const MAX_NOTE: usize = 8_000;
/// How many characters are told of each text where several are told as one.
const HEAD: usize = 600;

/// Something to be said at the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub speaker: Speaker,
    /// What kind of message it is; decides whether it may wait.
    pub kind: MessageKind,
    /// The first line.
    pub headline: String,
    /// What follows it.
    pub body: Body,
    /// Key/values for the curious, folded away.
    pub details: Vec<(String, String)>,
}

/// The text of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "body")]
pub enum Body {
    /// Nothing but the headline.
    Empty,
    /// Conductor's own words.
    Own {
        /// The words.
        text: String,
    },
    /// Words of an agent or a human, kept elsewhere; made harmless before they are shown.
    Kept {
        /// Where.
        artifact: Artifact,
        /// Conductor's own words above them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preface: Option<String>,
    },
    /// Several messages that waited, told as one: each with its headline and the head of its text.
    Several {
        /// The messages, oldest first.
        parts: Vec<Message>,
    },
}

impl Message {
    /// What must be read to render it.
    pub fn kept(&self) -> Vec<&Artifact> {
        match &self.body {
            Body::Empty | Body::Own { .. } => vec![],
            Body::Kept { artifact, .. } => vec![artifact],
            Body::Several { parts } => parts.iter().flat_map(Self::kept).collect(),
        }
    }

    /// Tells whether it belongs on the pull request: all of it does, or none.
    pub fn is_for_pull_request(&self) -> bool {
        match &self.body {
            Body::Several { parts } => !parts.is_empty() && parts.iter().all(Self::is_for_pull_request),
            Body::Empty | Body::Own { .. } | Body::Kept { .. } => self.kind == MessageKind::PullRequestRemark,
        }
    }
}

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// The run entered a phase.
    Transition,
    /// A human is asked to approve.
    Gate,
    /// What an operator did, mirrored.
    OperatorAction,
    /// A plan.
    Plan,
    /// A review.
    Review,
    /// A test report.
    TestReport,
    /// A first or last failure, a violation, a time-out.
    Failure,
    /// An agent's question.
    Question,
    /// An agent's own remark.
    Remark,
    /// An agent's own remark on the run's pull request; it is said there.
    PullRequestRemark,
    /// Several messages that waited.
    Digest,
}

impl MessageKind {
    /// Tells whether it passes the throttle: failures, gates and questions must be heard (GH-4).
    pub fn passes_throttle(self) -> bool {
        match self {
            // What an operator decided at a gate belongs to the gate.
            Self::Gate | Self::Failure | Self::Question | Self::OperatorAction => true,
            Self::Transition
            | Self::Plan
            | Self::Review
            | Self::TestReport
            | Self::Remark
            | Self::PullRequestRemark
            | Self::Digest => false,
        }
    }

    /// Tells whether `speaker` may say this kind of thing at all.
    pub fn may_be_said_by(self, speaker: Speaker) -> bool {
        match self {
            Self::Transition | Self::Gate | Self::OperatorAction | Self::Failure | Self::Digest => {
                speaker == Speaker::Orchestrator
            }
            Self::Plan => matches!(speaker, Speaker::Orchestrator | Speaker::Agent(Role::Planner)),
            Self::Review => speaker == Speaker::Agent(Role::Reviewer),
            Self::TestReport => speaker == Speaker::Agent(Role::Tester),
            Self::Question => true,
            Self::Remark | Self::PullRequestRemark => matches!(speaker, Speaker::Agent(_)),
        }
    }
}

/// An agent's wish to say something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentRequest {
    /// The agent's role.
    pub role: Role,
    /// Its words, kept.
    pub text: Artifact,
    /// Where it wants to say them.
    #[serde(default, skip_serializing_if = "CommentPlace::is_issue")]
    pub place: CommentPlace,
}

/// Where an agent wants its words to stand; always something of the run's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "on")]
pub enum CommentPlace {
    /// Below the issue.
    #[default]
    Issue,
    /// Below the pull request.
    PullRequest,
    /// Below the pull request, about one line of a file.
    Line {
        /// The file, relative to the repository's root.
        path: String,
        /// The line, from 1.
        line: u32,
    },
    /// In the check run, under Conductor's own verdict.
    Check,
}

impl CommentPlace {
    /// Tells whether it is the issue, where agents could speak before they could choose.
    pub fn is_issue(&self) -> bool {
        *self == Self::Issue
    }
}

/// What an agent wants to stand in the check run of the next proposed commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckNote {
    /// The agent's role; each has one note, the newest.
    pub role: Role,
    /// Its words, kept.
    pub text: Artifact,
}

/// Puts notes of agents below what a check run says; the verdict above them is Conductor's alone.
pub fn noted(summary: &str, notes: &[CheckNote], kept: &BTreeMap<Digest, String>) -> String {
    let mut text = summary.to_owned();
    for note in notes {
        text.push_str(&format!("\n{} notes:\n\n", note.role));
        let words = cut(&harmless(words(kept, &note.text)), MAX_NOTE);
        words
            .lines()
            .for_each(|line| text.push_str(&format!("> {line}\n")));
    }
    cut(&text, MAX_BODY - 1)
}

/// Returns the hidden marker that finds the message of one effect again.
pub fn marker(effect: &EffectId) -> String {
    format!("<!-- conductor:write {effect} -->")
}

/// Renders a message; `kept` are the texts of [`Message::kept`] by their address, and `clean` takes out what must not be
/// said. What it takes is never more than text: banner, details, link and marker are put below what it left.
pub fn render(
    message: &Message,
    run: &RunId,
    page: &str,
    effect: &EffectId,
    kept: &BTreeMap<Digest, String>,
    clean: &dyn Fn(&str) -> String,
) -> String {
    let mut text = format!(
        "[Conductor | {} | run:{run}] {}\n",
        message.speaker,
        harmless_line(&message.headline)
    );
    match &message.body {
        Body::Empty => {}
        Body::Own { text: own } => {
            text.push('\n');
            text.push_str(own.trim_end());
            text.push('\n');
        }
        Body::Kept { artifact, preface } => {
            text.push('\n');
            if let Some(own) = preface {
                text.push_str(&format!("{own}\n\n"));
            }
            let words = cut(&harmless(words(kept, artifact)), MAX_AGENT_TEXT);
            text.push_str(&words);
            text.push('\n');
            text.push_str(&end_of_fence(&words));
            if artifact.truncated {
                text.push_str("\n_(cut; the whole text is on the run's page)_\n");
            }
        }
        Body::Several { parts } => {
            text.push('\n');
            for part in parts {
                tell_part(&mut text, part, kept);
            }
        }
    }
    let hidden = text.matches(CODE_OPENS).count();
    let mut text = closed(clean(&text));
    if hidden > 0 {
        text.push_str(&format!(
            "\n> **Careful**: {hidden} hidden characters are shown as codes.\n"
        ));
    }
    let end = format!("\n[run {run}]({page})\n{}\n", marker(effect));
    let details = details(&message.details, clean);
    let room = MAX_BODY.saturating_sub(end.len());
    if text.len() + details.len() <= room {
        text.push_str(&details);
    }
    format!("{}{end}", cut(&text, room))
}

/// Ends what a text leaves open: its last line, and a code block whose end was taken out of it.
fn closed(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&end_of_fence(&text));
    text
}

fn words<'a>(kept: &'a BTreeMap<Digest, String>, artifact: &Artifact) -> &'a str {
    kept.get(&artifact.digest).map_or("", String::as_str)
}

/// Tells one of several messages: who, the headline, and how its text begins.
fn tell_part(text: &mut String, part: &Message, kept: &BTreeMap<Digest, String>) {
    text.push_str(&format!(
        "- {}: {}\n",
        part.speaker,
        harmless_line(&part.headline)
    ));
    match &part.body {
        Body::Empty => {}
        Body::Own { text: own } => own.lines().for_each(|line| text.push_str(&format!("  {line}\n"))),
        Body::Kept { artifact, preface } => {
            if let Some(own) = preface {
                text.push_str(&format!("  {own}\n"));
            }
            let whole = harmless(words(kept, artifact));
            let head: String = whole.chars().take(HEAD).collect();
            head.lines()
                .for_each(|line| text.push_str(&format!("  > {line}\n")));
            if head.len() < whole.len() {
                text.push_str("  > … (the rest is on the run's page)\n");
            }
        }
        Body::Several { parts } => {
            for part in parts {
                tell_part(text, part, kept);
            }
        }
    }
}

fn details(pairs: &[(String, String)], clean: &dyn Fn(&str) -> String) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n<details><summary>Details</summary>\n\n");
    for (key, value) in pairs {
        let line = format!(
            "- {}: `{}`",
            harmless_line(key),
            harmless_line(value).replace('`', "'")
        );
        text.push_str(&clean(&line));
        text.push('\n');
    }
    text.push_str("\n</details>\n");
    text
}

/// Cuts at a character boundary and says so.
fn cut(text: &str, longest: usize) -> String {
    const MARK: &str = "\n\n_(cut)_\n";
    if text.len() <= longest {
        return text.to_owned();
    }
    let most = longest.saturating_sub(MARK.len());
    let mut room = most;
    loop {
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let fence = end_of_fence(kept);
        let close = if fence.is_empty() {
            fence
        } else {
            format!("\n{}", fence.trim_end())
        };
        if kept.len() + close.len() <= most {
            return format!("{kept}{close}{MARK}");
        }
        // Shorter than what was kept, so that this ends: of nothing, no block is open.
        room = most.saturating_sub(close.len());
    }
}

/// What ends a code block that a text leaves open, so that what Conductor says after it is not taken for code.
///
/// Only at the very beginning of a line does a block open or close: `harmless` leaves no other fence. One in a list or a
/// quote would end with that, but nobody could tell which it is in without reading all of markdown.
fn end_of_fence(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let Some(sign) = line.chars().next().filter(|sign| "`~".contains(*sign)) else {
            continue;
        };
        let rest = line.trim_start_matches(sign);
        let length = line.len() - rest.len();
        if length < 3 {
            continue;
        }
        open = match open {
            None if sign == '`' && rest.contains('`') => None,
            None => Some((sign, length)),
            // Blanks of other kinds close nothing, and `harmless` leaves no tab there.
            Some((begun, least)) if begun == sign && length >= least && rest.trim_matches(' ').is_empty() => {
                None
            }
            begun => begun,
        };
    }
    open.map_or_else(String::new, |(sign, length)| {
        format!("{}\n", sign.to_string().repeat(length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactKind;

    fn said(text: &str) -> String {
        said_without(text, &str::to_owned)
    }

    fn said_without(text: &str, clean: &dyn Fn(&str) -> String) -> String {
        let message = Message {
            speaker: Speaker::Agent(Role::Planner),
            kind: MessageKind::Plan,
            headline: "a plan".into(),
            body: Body::Kept {
                artifact: Artifact::of(ArtifactKind::Plan, text.as_bytes()),
                preface: None,
            },
            details: vec![("tree".into(), "abc".into())],
        };
        let run = RunId::parse("r1").expect("a slug");
        render(
            &message,
            &run,
            "http://c/r1",
            &EffectId::derive(&run, 3, 0),
            &BTreeMap::from([(Digest::of(text.as_bytes()), text.to_owned())]),
            clean,
        )
    }

    /// SEC-2, S-48: references in any of their forms notify nobody and close nothing.
    #[test]
    fn foreign_references_are_broken() {
        let said =
            said("Closes GH-12, gh-3, o/r#4, https://forge/o/r/issues/5 and www.forge/o/r/PULL/6, not a/7.");
        assert!(
            said.contains("Closes GH- 12, gh- 3, o/rno. 4, https://forge/o/r/issues/ 5 and www.forge/o/r/PULL/ 6, not a/7."),
            "{said}"
        );
    }

    /// S-48: what is hidden is shown, and counted.
    #[test]
    fn hidden_characters_are_counted_in_a_banner() {
        let text = said("a\u{200b}b\u{202e}c");
        assert!(
            text.contains("> **Careful**: 2 hidden characters are shown as codes."),
            "{text}"
        );
        assert!(!said("abc").contains("Careful"));
    }

    /// GH-5, S-48: a name cannot break out of its code span, and needs none to call nobody and forge nothing.
    #[test]
    fn a_name_is_code_whatever_it_holds() {
        assert_eq!(
            code("a`b\n@c\u{200b} <!-- conductor:write r1.9.9 --> #7 <a> @ #x gh-5"),
            "`a'b (at)c\u{27e8}U+200B\u{27e9} < !-- conductor:write r1.9.9 --> no. 7 <a> @ #x gh- 5`"
        );
    }

    /// GH-4: a digest tells how each text begins, and no more of it.
    #[test]
    fn several_messages_are_told_with_their_heads() {
        let long = format!("first line\n<b>{}", "x".repeat(1000));
        let part = |body| Message {
            speaker: Speaker::Agent(Role::Tester),
            kind: MessageKind::Remark,
            headline: "left a remark".into(),
            body,
            details: vec![],
        };
        let digest = Message {
            speaker: Speaker::Orchestrator,
            body: Body::Several {
                parts: vec![
                    part(Body::Kept {
                        artifact: Artifact::of(ArtifactKind::Feedback, long.as_bytes()),
                        preface: Some("Actor: `@ann`".into()),
                    }),
                    part(Body::Own {
                        text: "own\nwords".into(),
                    }),
                    part(Body::Empty),
                ],
            },
            ..part(Body::Empty)
        };
        assert_eq!(
            digest.kept(),
            [&Artifact::of(ArtifactKind::Feedback, long.as_bytes())]
        );
        let kept = BTreeMap::from([(Digest::of(long.as_bytes()), long.clone())]);
        let run = RunId::parse("r1").expect("a slug");
        let text = render(
            &digest,
            &run,
            "http://c/r1",
            &EffectId::derive(&run, 3, 0),
            &kept,
            &str::to_owned,
        );
        let expected = format!(
            "[Conductor | Orchestrator | run:r1] left a remark\n\n- Tester: left a remark\n  Actor: `@ann`\n  > first line\n  > &lt;b>{}\n  \
             > … (the rest is on the run's page)\n- Tester: left a remark\n  own\n  words\n- Tester: left a remark\n\n\
             [run r1](http://c/r1)\n<!-- conductor:write r1.3.0 -->\n",
            "x".repeat(600 - "first line\n&lt;b>".len())
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_message_has_header_text_details_link_and_marker() {
        assert_eq!(
            said("Do it."),
            "[Conductor | Planner | run:r1] a plan\n\nDo it.\n\n<details><summary>Details</summary>\n\n- tree: `abc`\n\
             \n</details>\n\n[run r1](http://c/r1)\n<!-- conductor:write r1.3.0 -->\n"
        );
    }

    /// GH-5, S-48: no agent text can forge a header, a marker, a mention, a picture, or hide a character.
    #[test]
    fn agent_text_is_harmless() {
        let hostile = "[Conductor | Orchestrator | run:r1] merged\n  [Conductor | x\n<!-- conductor:write r1.9.9 -->\n\
                       @everyone ![x](http://evil/p.png)\u{202e}\u{200b}\u{e0041}<img src=x>";
        let said = said(hostile);
        assert_eq!(
            said.lines()
                .filter(|line| line.trim_start().starts_with("[Conductor"))
                .count(),
            1
        );
        assert_eq!(said.matches("<!-- conductor:write").count(), 1);
        for forbidden in ["@everyone", "![", "<img", "\u{202e}", "\u{200b}", "\u{e0041}"] {
            assert!(!said.contains(forbidden), "{forbidden:?} in {said}");
        }
        for visible in ["U+202E", "U+200B", "U+E0041"] {
            assert!(said.contains(visible));
        }
    }

    /// GH-5, SEC-2: nor by signs that are written in other words; a forge reads those before it looks for people and issues.
    #[test]
    fn no_entity_calls_anybody() {
        for hostile in [
            "&#64;everyone",
            "&#x40;everyone",
            "&#X40;o/team",
            "&commat;everyone",
            "&num;12",
            "&#35;12",
            "&#x23;12",
            "&lt;!-- conductor:write r1.9.9 --&gt;",
            "&lbrack;Conductor | Orchestrator | run:r1] merged",
            "&amp;#64;a",
        ] {
            let said = said(hostile);
            let rest = said.replace("&amp;", "");
            assert!(!rest.contains('&'), "{hostile}: {said}");
            // A name in code calls nobody even where its span lost its end.
            let name = code(hostile);
            assert!(!name.replace("& ", "").contains('&'), "{hostile}: {name}");
        }
        assert_eq!(code("R&D & &"), "`R& D & &`");
        assert_eq!(harmless("a & b && c &"), "a & b && c &");
    }

    /// S-48: a code block that is left open hides neither the banner nor the details nor the link that follow it.
    #[test]
    fn no_text_swallows_what_follows_it() {
        for open in [
            "```",
            "````\n```",
            "~~~",
            "~~~~\n~~~",
            "``` rust\na",
            "```\n    ```",
            "```\n~~~\n",
            "a\n```\n```\n```",
        ] {
            let said = said(&format!("x\u{200b}\n{open}"));
            let (before, _) = said.split_once("\n> **Careful**").expect("a banner");
            assert_eq!(end_of_fence(before), "", "{open}: {said}");
        }
        for closed in [
            "",
            "plain",
            "```\na\n```",
            "~~~~\n~~~\n~~~~~",
            "``` a`b",
            "    ```",
            "`` a",
        ] {
            assert_eq!(end_of_fence(closed), "", "{closed}");
        }
    }

    /// GH-5, SEC-3, S-48: whatever is taken out of a text, the banner, the details, the link and the marker stay, and a code
    /// block whose end was taken out does not swallow them.
    #[test]
    fn what_is_taken_out_of_a_text_takes_nothing_else_along() {
        let clean = |text: &str| match text.find("HEAD") {
            Some(at) => format!("{}[redacted]", text.get(..at).unwrap_or_default()),
            None => text.to_owned(),
        };
        let said = said_without("a\u{200b}\n```\nHEAD\n```\nmore", &clean);
        assert_eq!(
            said,
            "[Conductor | Planner | run:r1] a plan\n\na\u{27e8}U+200B\u{27e9}\n```\n[redacted]\n```\n\n> **Careful**: 1 hidden \
             characters are shown as codes.\n\n<details><summary>Details</summary>\n\n- tree: `abc`\n\n</details>\n\n\
             [run r1](http://c/r1)\n<!-- conductor:write r1.3.0 -->\n"
        );
        let pairs = [
            ("a".to_owned(), "HEAD".to_owned()),
            ("b".to_owned(), "c".to_owned()),
        ];
        let told = details(&pairs, &clean);
        assert!(
            told.ends_with("- a: `[redacted]\n- b: `c`\n\n</details>\n"),
            "{told}"
        );
    }

    /// GH-5: what just fits is said whole, and one byte more is cut.
    #[test]
    fn the_limit_is_exact() {
        let run = RunId::parse("r1").expect("a slug");
        let say = |length: usize| {
            let message = Message {
                speaker: Speaker::Orchestrator,
                kind: MessageKind::Transition,
                headline: "h".into(),
                body: Body::Own {
                    text: "x".repeat(length),
                },
                details: vec![],
            };
            render(
                &message,
                &run,
                "p",
                &EffectId::derive(&run, 3, 0),
                &BTreeMap::new(),
                &str::to_owned,
            )
        };
        let most = MAX_BODY - say(1).len() + 1;
        let fits = say(most);
        assert_eq!((fits.len(), fits.contains("_(cut)_")), (MAX_BODY, false));
        let cut = say(most + 1);
        assert!(cut.len() <= MAX_BODY && cut.contains("_(cut)_"), "{}", cut.len());
        assert!(cut.ends_with("<!-- conductor:write r1.3.0 -->\n"));
    }

    /// GH-5: the forge refuses 65 537 bytes, so no message is ever longer, and its marker is never cut.
    #[test]
    fn a_message_is_never_too_long_and_never_loses_its_marker() {
        for text in [
            "x".repeat(200_000),
            "é".repeat(100_000),
            format!("```\n{}", "y".repeat(100_000)),
        ] {
            let said = said(&text);
            assert!(said.len() <= MAX_BODY);
            assert!(said.ends_with("<!-- conductor:write r1.3.0 -->\n"));
            assert!(said.contains("_(cut)_"));
            assert_eq!(said.matches("```").count() % 2, 0);
        }
    }

    /// GH-5, S-48: no agent text defines where a link leads, wherever in a text that would count: not for Conductor's first
    /// line, nor for words of its own that hide their target.
    #[test]
    fn no_text_says_where_our_header_leads() {
        for before in [
            "", "> ", ">", "- ", "* ", "1. ", "> - ", "- > ", "> > ", "   ", "\t", " \t", "-\t", "> \t",
            "a\n\n> ",
        ] {
            for label in ["Conductor | Planner | run:r1", "x", "^1", "a\nb", "a\\]b"] {
                let said = said(&format!("{before}[{label}]: https://evil\n\n[click][{label}]"));
                assert!(!said.contains("]:"), "{before:?} {label:?}: {said}");
                assert!(said.contains("] : https://evil"), "{before:?} {label:?}: {said}");
            }
        }
        assert_eq!(harmless("if a[0]: b, see [c]"), "if a[0] : b, see [c]");
        assert_eq!(harmless_line("[x]: y"), "\\[x] : y");
        assert_eq!(code("[x]: y"), "`[x]: y`");
    }

    /// S-48: a fence stays one at the very beginning of a line alone; code within a line stays code everywhere.
    #[test]
    fn a_fence_stays_one_only_where_a_line_begins() {
        for stays in [
            "```a", "~~~", "- `a`", "- ``a``", "1. ~~a~~", "a ```", "- a ```", "> a",
        ] {
            assert_eq!(harmless(stays), stays);
        }
        for before in [" ", "\t", "- ", "* ", "+ ", "> ", "1. ", "10) ", "- > ", "a\n  "] {
            for sign in ["```", "~~~~"] {
                assert_eq!(
                    harmless(&format!("{before}{sign}a")),
                    format!("{before}\\{sign}a")
                );
            }
        }
    }

    /// S-48: some readers of markdown end a code block at a fence with a tab behind it, others do not; no such fence is left.
    #[test]
    fn no_line_ends_with_a_tab() {
        for (text, shown) in [
            ("```\na\n```\t", "```\na\n```"),
            ("``` \t \nb", "```\nb"),
            ("a\t\nb", "a\nb"),
            ("a  \nb ", "a  \nb "),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }

    /// S-48: what calls nobody and forges nothing stays as it was written.
    #[test]
    fn plain_signs_stay_as_they_are() {
        assert_eq!(harmless("a [b] c! #x @ -"), "a [b] c! #x @ -");
        assert_eq!(harmless("[b](c) d](e)"), "\\[b] (c) d] (e)");
    }

    /// GH-5: a cut falls between characters and never past the limit, also where a code block is closed.
    #[test]
    fn a_cut_falls_between_characters_within_the_limit() {
        for before in ["", "a", "ab", "```", "```a"] {
            for longest in 20..40 {
                let said = cut(&format!("{before}{}", "é€".repeat(20)), longest);
                assert!(said.len() <= longest, "{before} {longest}: {said}");
                assert!(said.len() + 5 > longest, "{before} {longest}: {said}");
                assert!(said.starts_with(before) && said.ends_with("_(cut)_\n"), "{said}");
            }
        }
    }

    /// GH-5: details are told whole where they have room, and not at all where they have none.
    #[test]
    fn details_are_told_whole_or_not_at_all() {
        assert!(said(&"x".repeat(5_000)).contains("<details>"));
        let wide = |length: usize| {
            let run = RunId::parse("r1").expect("a slug");
            let message = Message {
                speaker: Speaker::Orchestrator,
                kind: MessageKind::Transition,
                headline: "h".into(),
                body: Body::Own {
                    text: "x".repeat(20_000),
                },
                details: vec![("k".into(), "v".repeat(length))],
            };
            render(
                &message,
                &run,
                "p",
                &EffectId::derive(&run, 3, 0),
                &BTreeMap::new(),
                &str::to_owned,
            )
        };
        assert!(wide(40_000).contains("</details>"));
        assert!(!wide(60_000).contains("<details>"));
    }

    /// GH-4: a text that is told whole has no rest.
    #[test]
    fn a_short_text_has_no_rest() {
        let part = Message {
            speaker: Speaker::Agent(Role::Tester),
            kind: MessageKind::Remark,
            headline: "left a remark".into(),
            body: Body::Kept {
                artifact: Artifact::of(ArtifactKind::Feedback, b"short"),
                preface: None,
            },
            details: vec![],
        };
        let mut text = String::new();
        tell_part(
            &mut text,
            &part,
            &BTreeMap::from([(Digest::of(b"short"), "short".to_owned())]),
        );
        assert_eq!(text, "- Tester: left a remark\n  > short\n");
    }

    #[test]
    fn agents_may_not_announce_phases() {
        for role in Role::ALL {
            assert!(!MessageKind::Transition.may_be_said_by(Speaker::Agent(role)));
            assert!(!MessageKind::Gate.may_be_said_by(Speaker::Agent(role)));
        }
        assert!(!MessageKind::Plan.may_be_said_by(Speaker::Agent(Role::Tester)));
    }
}
