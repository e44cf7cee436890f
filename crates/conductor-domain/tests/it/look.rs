//! Looks at the forge without a hint: when one is worth it, and what of it is news (GH-2).

use conductor_domain::Context;
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::decide::look::{Sight, is_news, worth_a_look};
use conductor_domain::forge::{
    HumanReview, IssueProblem, IssueSnapshot, NoticeSubject, PullRequestSnapshot, PullRequestState,
};
use conductor_domain::id::{IssueNumber, PullRequestNumber, RepoId};
use conductor_domain::input::PolicyVerdict;

use crate::scenarios::way;
use crate::script::play;
use crate::world::{World, commit, kept};

fn lived(lines: &[&str]) -> World {
    let mut world = World::new();
    for step in lines.iter().flat_map(|line| way(line)) {
        play(&mut world, step).unwrap_or_else(|| panic!("cannot play `{step}`"));
    }
    world
}

fn news(world: &World, sight: &Sight) -> bool {
    let at = Context {
        now: world.now,
        seq: world.seq + 1,
        policy: PolicyVerdict::Allow,
        merge: None,
    };
    is_news(world.run(), sight, &at)
}

const THE_ISSUE: Option<NoticeSubject> = Some(NoticeSubject::Issue {
    number: IssueNumber(7),
});
const THE_PULL_REQUEST: Option<NoticeSubject> = Some(NoticeSubject::PullRequest {
    number: PullRequestNumber(9),
});

/// GH-2, S-50: the issue while the plan waits, the pull request as long as there is one, and neither while it is read.
#[test]
fn what_a_run_waits_for_is_looked_at_and_nothing_else() {
    for (lines, expected) in [
        (&["start"][..], None),
        (&["to planning"], None),
        (&["to plan gate"], THE_ISSUE),
        (&["to plan gate", "ann pauses"], THE_ISSUE),
        (&["to plan gate", "forge announces issue"], None),
        (&["to plan gate", "ann rejects"], None),
        (&["to executing"], None),
        (&["to merge gate"], THE_PULL_REQUEST),
        (&["to merge gate", "forge announces pr 9"], None),
        (&["to merge gate", "ann pauses"], THE_PULL_REQUEST),
        (
            &[
                "to merge gate",
                "forge announces review",
                "pr changes requested 1",
            ],
            THE_PULL_REQUEST,
        ),
        (&["to merge gate", "ann cancels"], None),
    ] {
        assert_eq!(worth_a_look(lived(lines).run()), expected, "{lines:?}");
    }
}

fn issue(text: &str, open: bool) -> Sight {
    Sight::Issue(IssueSnapshot {
        number: IssueNumber(7),
        title: "Make it so".into(),
        artifact: kept(ArtifactKind::Issue, text),
        open,
        author: "zoe".into(),
        untrusted: None,
    })
}

/// S-50: an edit, a comment, a close and a deletion are news; the same again is not.
#[test]
fn a_changed_issue_is_news_while_its_plan_waits() {
    let waiting = lived(&["to plan gate"]);
    assert!(!news(&waiting, &issue("Make it so", true)));
    assert!(news(&waiting, &issue("Make it so, now", true)));
    assert!(news(&waiting, &issue("Make it so", false)));
    assert!(news(&waiting, &Sight::NoIssue(IssueProblem::Deleted)));
    let held = lived(&["to plan gate", "forge announces issue", "issue deleted"]);
    assert!(!news(&held, &Sight::NoIssue(IssueProblem::Deleted)));
    assert!(news(&held, &Sight::NoIssue(IssueProblem::Moved)));
    let executing = lived(&["to executing"]);
    assert!(!news(&executing, &issue("Make it so, now", true)));
}

fn open(world: &World) -> PullRequestSnapshot {
    let workspace = world.run().workspace.clone().expect("a workspace");
    PullRequestSnapshot {
        number: PullRequestNumber(9),
        state: PullRequestState::Open,
        head: workspace.head,
        head_repo: Some(RepoId(42)),
        base_head: Some(workspace.base),
        review: None,
        failed_checks: vec![],
        checks_feedback: None,
        pending_checks: vec![],
    }
}

/// GH-2, RUN-1a: a pull request that waits is no news however often it is looked at; what a held run may not act on is
/// none until it is free.
#[test]
fn a_pull_request_that_only_waits_is_no_news() {
    let waiting = lived(&["to merge gate"]);
    let quiet = open(&waiting);
    let merged = PullRequestSnapshot {
        state: PullRequestState::Merged { by: None },
        ..quiet.clone()
    };
    let reviewed = PullRequestSnapshot {
        review: Some(HumanReview {
            id: 1,
            by: "bob".into(),
            feedback: kept(ArtifactKind::Feedback, "rename it"),
            commit: Some(quiet.head.clone()),
        }),
        ..quiet.clone()
    };
    let moved = PullRequestSnapshot {
        base_head: Some(commit(0xba5f)),
        ..quiet.clone()
    };
    let table = [
        (quiet, false, false),
        (merged, true, true),
        (reviewed, true, false),
        (moved, true, true),
    ];
    let paused = lived(&["to merge gate", "ann pauses"]);
    for (seen, free, held) in table {
        let sight = Sight::PullRequest(seen);
        assert_eq!(
            (news(&waiting, &sight), news(&paused, &sight)),
            (free, held),
            "{sight:?}"
        );
    }
}
