//! A question to a human about exact content: what is to be approved, and the digest that the answer must name.
//!
//! This module does not know who may answer.

use serde::{Deserialize, Serialize};

use crate::diff::Finding;
use crate::digest::Digest;
use crate::invocation::CallWish;
use crate::spec::PolicyVersion;
use crate::time::Timestamp;

/// What a human is asked to approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// The plan, before anything is changed.
    Plan,
    /// A change that needs a second look before it leaves.
    Diff,
    /// A call of a tool that policy wants a person to approve (TOOL-4b).
    Call,
}

impl std::fmt::Display for GateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Diff => "diff",
            Self::Call => "call",
        })
    }
}

/// An open gate: the run goes on only with an answer that names `subject` (BEY-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// What is asked.
    pub kind: GateKind,
    /// The digest over everything that is being approved.
    pub subject: Digest,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Why it was opened, where that is not the normal way of things.
    pub findings: Vec<Finding>,
}

/// A call of a tool before a human; beside the phase, because any agent at work may make one. The run is held meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallGate {
    /// The question.
    pub gate: Gate,
    /// The call.
    pub wish: CallWish,
}

/// Computes what an approval of a call is bound to: the call itself, the words that are shown of it, the policies that ask,
/// when it was asked, and as which of the run's calls, so that the same call asked again in one instant needs its own.
pub fn call_subject(wish: &CallWish, policy: &PolicyVersion, asked_at: Timestamp, number: u32) -> Digest {
    let shown = format!(
        "call {}\ntext {}\nreason {}\n",
        wish.call, wish.text.digest, wish.reason
    );
    let asked = format!("policy {}\nasked {}\nnumber {number}\n", policy.0, asked_at.0);
    Digest::of(format!("{shown}{asked}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{Artifact, ArtifactKind};

    /// BEY-1, S-47: an approval of a call covers what is made, what is shown, who asks, when and how often.
    #[test]
    fn another_call_text_policy_time_or_number_is_another_subject() {
        let wish = CallWish {
            tool: "bash".to_owned(),
            call: Digest::of(b"call"),
            text: Artifact::of(ArtifactKind::Call, b"text"),
            reason: "p: because".to_owned(),
        };
        let (policy, now) = (PolicyVersion("1".to_owned()), Timestamp(1));
        let subjects = [
            call_subject(&wish, &policy, now, 1),
            call_subject(
                &CallWish {
                    call: Digest::of(b"other"),
                    ..wish.clone()
                },
                &policy,
                now,
                1,
            ),
            call_subject(
                &CallWish {
                    text: Artifact::of(ArtifactKind::Call, b"other"),
                    ..wish.clone()
                },
                &policy,
                now,
                1,
            ),
            call_subject(
                &CallWish {
                    reason: "q: because".to_owned(),
                    ..wish.clone()
                },
                &policy,
                now,
                1,
            ),
            call_subject(&wish, &PolicyVersion("2".to_owned()), now, 1),
            call_subject(&wish, &policy, Timestamp(2), 1),
            call_subject(&wish, &policy, now, 2),
        ];
        let distinct: std::collections::BTreeSet<&str> = subjects.iter().map(Digest::as_str).collect();
        assert_eq!(distinct.len(), subjects.len());
        assert_eq!(subjects[0], call_subject(&wish, &policy, now, 1));
    }
}
