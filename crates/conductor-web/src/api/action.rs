//! What an operator asks of a run.
//!
//! An answer at a gate names the digest of what was looked at. This module does not know what is allowed.

use conductor_domain::digest::Digest;
use conductor_domain::gate::GateKind;
use conductor_domain::id::EffectId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks for a new run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// `owner/name` of a registered repository.
    pub repo: String,
    /// The issue's number.
    #[serde(deserialize_with = "crate::extract::countable")]
    pub issue: u64,
    /// The queue position, 1 to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The scenario for scripted agents, instead of the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Policies of this run alone, over those of its repository; admins alone write policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// Asks something of a run (RUN-7, RUN-11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "action", deny_unknown_fields)]
pub enum ActionRequest {
    /// Lets the run pass a gate.
    Approve {
        /// Which gate; the open one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        gate: Option<GateKind>,
        /// What was looked at.
        #[schemars(with = "String")]
        subject: Digest,
        /// Said with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Sends the work back.
    Revise {
        /// Which gate; the open one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        gate: Option<GateKind>,
        /// What was looked at.
        #[schemars(with = "String")]
        subject: Digest,
        /// What must change.
        comment: String,
    },
    /// Calls the run off at a gate.
    Reject {
        /// Which gate; the open one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        gate: Option<GateKind>,
        /// What was looked at.
        #[schemars(with = "String")]
        subject: Digest,
        /// Said with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Answers a question of an agent.
    Answer {
        /// The question that was looked at; another one that is open by now is not answered.
        #[schemars(with = "String")]
        question: EffectId,
        /// The answer.
        text: String,
    },
    /// Lets the current effect finish and starts nothing new.
    Pause,
    /// Takes the operator's pause away.
    Resume,
    /// Calls the run off.
    Cancel {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Starts the current phase over.
    Retry,
    /// Gives a held run up.
    Fail {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Moves the run in the queue.
    Reprioritize {
        /// Where to, 1 to 10.
        priority: u8,
    },
}
