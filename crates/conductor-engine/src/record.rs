//! Decides the form in which facts and decisions are kept: canonical JSON under a version number.
//!
//! A fact is the redacted input with its context and the decider's version (RUN-3); a decision is an event. Files in
//! `testdata/record/` hold one example of each kind; a change of form is a new version beside this one. This module
//! does not know where records are kept.

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::input::Input;
use conductor_domain::instance::{ChainHead, InstanceEvent, InstanceInput};
use conductor_domain::message::CommentRequest;
use conductor_domain::{Context, DECIDER_VERSION, Event};
use conductor_port::ledger::{Record, StreamId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the form written by this module.
pub const SCHEMA_VERSION: u32 = 1;

/// The class of a record that holds an input.
pub const FACT: &str = "fact";
/// The class of a record that holds an event.
pub const DECISION: &str = "decision";

/// An input as it is kept, with everything that the decision depended on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<I> {
    /// The version of `decide` that made the decisions which follow.
    pub decider: u32,
    /// The input, redacted.
    pub input: I,
    /// What `decide` was told beside it.
    pub context: Context,
    /// Where the instance's chain ended then, so that the runs' chains anchor it in turn (SEC-8); older facts lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<ChainHead>,
}

impl<I> Fact<I> {
    /// Pairs an input with its context under the current decider.
    pub fn new(input: I, context: Context) -> Self {
        Self {
            decider: DECIDER_VERSION,
            input,
            context,
            instance: None,
        }
    }

    /// Says where the instance's chain ended.
    #[must_use]
    pub fn beside(self, instance: Option<ChainHead>) -> Self {
        Self { instance, ..self }
    }
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `agent`, `operator` or `system`.
    pub kind: &'static str,
    /// Who.
    pub name: String,
}

impl Actor {
    /// Conductor itself, in one of its parts.
    pub fn system(part: &str) -> Self {
        Self {
            kind: "system",
            name: part.to_owned(),
        }
    }

    fn operator(name: &impl ToString) -> Self {
        Self {
            kind: "operator",
            name: name.to_string(),
        }
    }
}

/// Something that arrives and is kept as a fact.
pub trait Arrives: Serialize + DeserializeOwned + PartialEq {
    /// The name in records.
    fn name(&self) -> &'static str;
    /// Who sends it.
    fn actor(&self) -> Actor;
}

impl Arrives for Input {
    fn name(&self) -> &'static str {
        match self {
            Self::StartRun { .. } => "start_run",
            Self::Operate { .. } => "operate",
            Self::KillSwitchTurned { .. } => "kill_switch_turned",
            Self::Performed { .. } => "performed",
            Self::Faulted { .. } => "faulted",
            Self::RequestComment { .. } => "request_comment",
            Self::RequestFields { .. } => "request_fields",
            Self::EgressDenied { .. } => "egress_denied",
            Self::ForgeNoticed { .. } => "forge_noticed",
            Self::DeadlinePassed { .. } => "deadline_passed",
        }
    }

    fn actor(&self) -> Actor {
        match self {
            Self::StartRun { spec } => Actor::operator(&spec.started_by),
            Self::Operate { by, .. } => Actor::operator(by),
            Self::KillSwitchTurned { .. } => Actor::system("instance"),
            Self::Performed { .. } | Self::Faulted { .. } => Actor::system("engine"),
            Self::RequestComment {
                comment: CommentRequest { role, .. },
                ..
            }
            | Self::RequestFields { role, .. } => Actor {
                kind: "agent",
                name: role.to_string(),
            },
            Self::EgressDenied { .. } => Actor::system("gateway"),
            Self::ForgeNoticed { .. } => Actor::system("forge"),
            Self::DeadlinePassed { .. } => Actor::system("clock"),
        }
    }
}

impl Arrives for InstanceInput {
    fn name(&self) -> &'static str {
        match self {
            Self::AddProject { .. } => "add_project",
            Self::RegisterRepo { .. } => "register_repo",
            Self::TurnKillSwitch { .. } => "turn_kill_switch",
            Self::GrantEgress { .. } => "grant_egress",
            Self::RevokeEgress { .. } => "revoke_egress",
            Self::SetPolicy { .. } => "set_policy",
            Self::ChangeStaff { .. } => "change_staff",
            Self::ProviderLimited { .. } => "provider_limited",
            Self::HeadsCollected { .. } => "heads_collected",
        }
    }

    fn actor(&self) -> Actor {
        match self {
            Self::AddProject { by, .. }
            | Self::RegisterRepo { by, .. }
            | Self::TurnKillSwitch { by, .. }
            | Self::GrantEgress { by, .. }
            | Self::RevokeEgress { by, .. }
            | Self::SetPolicy { by, .. }
            | Self::ChangeStaff { by, .. } => Actor::operator(by),
            Self::ProviderLimited { .. } => Actor::system("engine"),
            Self::HeadsCollected { .. } => Actor::system("anchor"),
        }
    }
}

/// Something that was decided and is kept as a decision.
pub trait Decided: Serialize + DeserializeOwned + PartialEq {
    /// The name in records.
    fn name(&self) -> &'static str;
}

impl Decided for Event {
    fn name(&self) -> &'static str {
        Event::name(self)
    }
}

impl Decided for InstanceEvent {
    fn name(&self) -> &'static str {
        InstanceEvent::name(self)
    }
}

/// Names a record; the same place always has the same name, so that a replay finds it again.
pub fn event_id(stream: &StreamId, seq: u64) -> String {
    format!("{stream}#{seq}")
}

/// Writes a value as canonical JSON (RFC 8785).
pub fn canonical(value: &impl Serialize) -> String {
    serde_json_canonicalizer::to_string(value)
        .expect("our records hold only strings, numbers, lists and maps with string keys")
}

/// Encodes a payload and proves that it can be read back.
///
/// Canonical JSON knows only doubles: a whole number past 2^53 would come back as another one, or not at all, and
/// would break the stream for ever. Such a payload is refused here instead.
pub fn encode<T: Serialize + DeserializeOwned + PartialEq>(name: &str, value: &T) -> Result<String, Fault> {
    let text = canonical(value);
    match serde_json::from_str::<T>(&text) {
        Ok(back) if back == *value => Ok(text),
        Ok(_) | Err(_) => Err(Fault::permanent(format!(
            "cannot keep {name}: it holds a value that would not be read back the same"
        ))),
    }
}

/// Computes the hash of a payload.
pub fn payload_hash(payload: &str) -> String {
    Digest::of(payload.as_bytes()).into()
}

/// Reads the payload of a record back.
pub fn decode<T: DeserializeOwned>(record: &Record) -> Result<T, Fault> {
    if record.schema_version != SCHEMA_VERSION {
        return Err(Fault::permanent(format!(
            "record {} has form {}, and this version reads only form {SCHEMA_VERSION}",
            record.event_id, record.schema_version
        )));
    }
    serde_json::from_str(&record.payload).map_err(|error| {
        Fault::permanent(format!(
            "cannot read record {} ({}): {error}",
            record.event_id, record.kind
        ))
    })
}

#[cfg(test)]
mod tests {
    use conductor_domain::deadline::Deadline;
    use conductor_domain::hold::Hold;
    use conductor_domain::time::Timestamp;

    use super::*;

    /// RUN-2: what could not be replayed byte for byte is not kept at all.
    #[test]
    fn a_number_that_would_not_come_back_is_refused() {
        for (micros, kept) in [
            (i64::MAX, false),
            ((1 << 53) + 1, false),
            (1 << 53, true),
            (0, true),
            (-1, true),
        ] {
            let event = Event::HoldPlaced {
                hold: Hold::ProviderLimit {
                    account: "a".into(),
                    until: Timestamp(micros),
                },
            };
            assert_eq!(encode("event", &event).is_ok(), kept, "{micros}");
        }
    }

    #[test]
    fn an_input_is_named_as_it_is_tagged() {
        let input = Input::DeadlinePassed {
            deadline: Deadline::Poll,
        };
        let value = serde_json::to_value(&input).expect("an input is JSON");
        assert_eq!(
            value.get("input").and_then(|tag| tag.as_str()),
            Some(Arrives::name(&input))
        );
    }

    #[test]
    fn a_record_of_a_newer_form_is_named_and_not_guessed_at() {
        let record = Record {
            stream: "instance".into(),
            seq: 4,
            event_id: "instance#4".into(),
            schema_version: 2,
            class: DECISION.into(),
            kind: "kill_switch_turned".into(),
            payload: "{}".into(),
            payload_hash: String::new(),
            actor_type: "system".into(),
            actor: String::new(),
            cause: String::new(),
            at: Timestamp(0),
            hash: String::new(),
        };
        let fault = decode::<InstanceEvent>(&record).expect_err("form 2 is unknown");
        assert_eq!(
            fault.what,
            "record instance#4 has form 2, and this version reads only form 1"
        );
    }
}
