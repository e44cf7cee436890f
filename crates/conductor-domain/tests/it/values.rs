//! What small values say and where their bounds lie.

use std::collections::BTreeMap;

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::diff::{ChangeClass, Weighed};
use conductor_domain::input::{Action, Input};
use conductor_domain::message::{
    Body, CheckNote, CommentPlace, MAX_BODY, Message, MessageKind, noted, render,
};
use conductor_domain::refusal::Refusal;
use conductor_domain::relief::{LONGEST_RELIEF, ReliefScope};
use conductor_domain::role::{Role, Speaker};
use conductor_domain::staff::{Rank, Staff};
use conductor_domain::time::{Millis, Timestamp};

use crate::scenarios::way;
use crate::script::play;
use crate::world::{World, effect_id, kept, operator, spec};

/// RUN-14: facts alone make a change surer or less sure.
#[test]
fn confidence_follows_the_facts() {
    let weighed = |files, findings, retries| Weighed {
        class: ChangeClass::Code,
        files,
        findings,
        retries,
    };
    for (facts, percent) in [
        ((1, 0, 0), 100),
        ((5, 0, 0), 100),
        ((6, 0, 0), 99),
        ((1, 1, 0), 80),
        ((1, 9, 0), 80),
        ((1, 0, 1), 80),
        ((7, 2, 2), 38),
        ((1, 0, 5), 0),
        ((1, 0, u32::MAX), 0),
        ((u32::MAX, 0, 0), 0),
    ] {
        let (files, findings, retries) = facts;
        assert_eq!(
            weighed(files, findings, retries).confidence(),
            percent,
            "{facts:?}"
        );
    }
    let words = [
        ChangeClass::Documentation,
        ChangeClass::Tests,
        ChangeClass::Dependencies,
        ChangeClass::Code,
    ]
    .map(ChangeClass::as_str);
    assert_eq!(words, ["documentation", "tests", "dependencies", "code"]);
}

/// RUN-3: what says nothing is not written, so that records of before read and write the same.
#[test]
fn what_says_nothing_is_not_written() {
    let written = |rank: Rank| {
        let mut spec = spec();
        spec.starter_rank = rank;
        serde_json::to_value(spec).expect("plain data")["starter_rank"].clone()
    };
    assert_eq!(written(Rank::Operator), serde_json::Value::Null);
    assert_eq!(written(Rank::Admin), "admin");
    let places = [
        CommentPlace::Issue,
        CommentPlace::PullRequest,
        CommentPlace::Check,
        CommentPlace::Line {
            path: "a".into(),
            line: 1,
        },
    ];
    assert_eq!(places.map(|place| place.is_issue()), [true, false, false, false]);
}

/// SEC-7: ranks go by their words, and nobody is there until somebody comes.
#[test]
fn ranks_have_words_and_an_instance_begins_without_staff() {
    assert_eq!(
        Rank::ALL.map(|rank| rank.to_string()),
        ["viewer", "operator", "admin"]
    );
    let mut staff = Staff::default();
    assert!(staff.is_empty());
    staff.operators.insert(operator("ann"), Rank::Viewer);
    assert!(!staff.is_empty());
}

/// SEC-1: how long, how short and how late an override may be.
#[test]
fn an_override_keeps_to_its_bounds() {
    let mut world = World::new();
    for step in way("to plan gate") {
        play(&mut world, step).expect("a known step");
    }
    let grant = |world: &mut World, justification: &str, until: Timestamp| {
        let action = Action::GrantRelief {
            scope: ReliefScope {
                policy: "p".into(),
                role: Role::Implementer,
                tool: "bash".into(),
                target: "worktree".into(),
            },
            justification: justification.to_owned(),
            until,
        };
        let by = operator("ann");
        world.give(Input::Operate { by, action }).map(drop)
    };
    let (now, why) = (world.now, "x".repeat(10));
    let later = now.after(LONGEST_RELIEF);
    let unfit = |refused: Result<(), Refusal>| matches!(refused, Err(Refusal::JustificationUnfit { .. }));
    assert!(unfit(grant(&mut world, &"x".repeat(9), later)));
    assert!(unfit(grant(&mut world, &format!(" {} ", "x".repeat(9)), later)));
    assert!(unfit(grant(&mut world, &"x".repeat(1001), later)));
    for until in [now, Timestamp(now.0 - 1), Timestamp(later.0 + 1)] {
        assert_eq!(grant(&mut world, &why, until), Err(Refusal::ReliefEndUnfit));
    }
    assert_eq!(grant(&mut world, &why, later), Ok(()));
    assert_eq!(grant(&mut world, &"x".repeat(1000), now.after(Millis(1))), Ok(()));
    let reliefs = &world.run().reliefs;
    assert_eq!(
        reliefs.iter().map(|relief| relief.number).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(reliefs[0].is_in_force(Timestamp(later.0 - 1)) && !reliefs[0].is_in_force(later));
    assert_eq!(reliefs[0].scope.to_string(), "p for implementer bash worktree");
}

/// S-50, RUN-14: agents know the issue of approval time, and a merge is weighed by what was inspected.
#[test]
fn a_run_tells_what_counts_in_its_phase() {
    let at = |place: &str| {
        let mut world = World::new();
        for step in way(place) {
            play(&mut world, step).expect("a known step");
        }
        world
    };
    for place in ["to plan gate", "to testing", "to proposing", "to merge gate"] {
        let world = at(place);
        let issue = world.run().issue_in_force().expect("an issue");
        assert_eq!(
            Some(issue.number),
            world.run().issue.as_ref().map(|issue| issue.number)
        );
        let is_weighed = place == "to merge gate";
        assert_eq!(world.run().weighed().is_some(), is_weighed, "{place}");
    }
}

/// GH-5, S-48: agents' notes stand below Conductor's own words, marked as theirs, and never past what the forge takes.
#[test]
fn notes_stand_below_the_verdict() {
    let note = |role, text: &str| {
        let text = kept(ArtifactKind::Feedback, text);
        CheckNote { role, text }
    };
    let texts = ["one\ntwo", "[Conductor | Reviewer | run:r1] fine"];
    let notes = [note(Role::Tester, texts[0]), note(Role::Reviewer, texts[1])];
    let by_digest: BTreeMap<_, _> = notes
        .iter()
        .zip(texts)
        .map(|(note, text)| (note.text.digest.clone(), text.to_owned()))
        .collect();
    let shown = noted("It passed.", &notes, &by_digest);
    assert!(
        shown.starts_with("It passed.\nTester notes:\n\n> one\n> two\n\nReviewer notes:\n\n> "),
        "{shown}"
    );
    assert!(!shown.contains("\n[Conductor |"), "{shown}");
    let long = "y".repeat(2 * MAX_BODY);
    assert!(noted(&long, &notes, &by_digest).len() < MAX_BODY);
    assert_eq!(noted("It passed.", &[], &by_digest), "It passed.");
}

/// S-48: a code block that an agent leaves open ends before Conductor speaks again, by the signs that it began with.
#[test]
fn an_open_code_block_ends_before_our_words() {
    let end_of = |text: &str| {
        let artifact = Artifact::of(ArtifactKind::Plan, text.as_bytes());
        let kept = BTreeMap::from([(artifact.digest.clone(), text.to_owned())]);
        let message = Message {
            speaker: Speaker::Agent(Role::Planner),
            kind: MessageKind::Plan,
            headline: "a plan".into(),
            body: Body::Kept {
                artifact,
                preface: None,
            },
            details: vec![],
        };
        let spec = spec();
        let shown = render(
            &message,
            &spec.run,
            "http://c/r",
            &effect_id("r1.1.0"),
            &kept,
            &str::to_owned,
        );
        let (_, after) = shown.split_once("END\n").expect("the text is there");
        let (closing, _) = after.split_once("\n[run ").expect("our words follow");
        closing.to_owned()
    };
    for (text, closing) in [
        ("END", ""),
        ("```\ncode\nEND", "```\n"),
        ("```\ncode\n```\nEND", ""),
        ("````\ncode\n```\nEND", "````\n"),
        ("```\ncode\n````\nEND", ""),
        ("```\ncode\n``` rust\nEND", "```\n"),
        ("``` rust\ncode\nEND", "```\n"),
        ("``` ru`st\ncode\nEND", ""),
        ("~~~ ru`st\ncode\nEND", "~~~\n"),
        ("~~~\n```\nEND", "~~~\n"),
        ("~~~\n```\n~~~\nEND", ""),
        ("``\ncode\nEND", ""),
        // What does not begin its line is no fence any more.
        ("   ```\ncode\nEND", ""),
        ("    ```\ncode\nEND", ""),
        ("- ```\n  code\n  ```\nEND", ""),
        ("```\n  ```\nEND", "```\n"),
        ("a ```\ncode\nEND", ""),
        ("```\n```\n```\nEND", "```\n"),
    ] {
        assert_eq!(end_of(text), closing, "{text:?}");
    }
}
