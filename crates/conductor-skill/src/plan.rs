//! What would have to be done so that every target holds what is wanted; one function decides for plan, apply, verify,
//! doctor, update and remove.
//!
//! This module does not know how anything is done.

use conductor_domain::digest::Digest;
use conductor_port::target::{Changed, FileFault, Found, Mode, Placement, TargetFault};
use serde::Serialize;

use crate::environment::Environment;
use crate::lock::Put;
use crate::name::SkillName;

/// Why a skill stays that somebody worked on.
pub(crate) const BY_HAND: &str = "it was changed by hand since it was installed";

/// What would have to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing is there, and something should be.
    Create,
    /// Something else of ours is there.
    Update,
    /// All is well.
    Noop,
    /// Something is there that stays.
    Conflict,
    /// Something of ours is there, and nothing should be.
    Remove,
}

impl Action {
    /// The word on screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Noop => "noop",
            Self::Conflict => "conflict",
            Self::Remove => "remove",
        }
    }
}

/// One skill at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The skill.
    pub skill: SkillName,
    /// The environment.
    pub environment: Environment,
    /// The path there.
    pub path: String,
    /// How it is, or will be, put there.
    pub mode: Mode,
    /// What would have to be done.
    pub action: Action,
    /// Why.
    pub reasons: Vec<String>,
    /// What is wanted there.
    #[serde(skip)]
    pub(crate) wanted: Option<Digest>,
    #[serde(skip)]
    pub(crate) placement: Placement,
}

/// Something that could not even be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// The skill.
    pub skill: SkillName,
    /// The environment, where it is one's fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// The stable code.
    pub code: &'static str,
    /// What was attempted, and what is wrong.
    pub what: String,
    /// What to do.
    pub hint: String,
    /// Each file that did not arrive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileFault>,
}

impl Trouble {
    /// Tells a target's fault.
    pub(crate) fn of(skill: &SkillName, environment: &Environment, fault: &TargetFault) -> Self {
        let hint = |text: &str| text.to_owned();
        let (code, hint, files) = match fault {
            TargetFault::Unavailable { hint, .. } => ("CDR0707", hint.clone(), Vec::new()),
            TargetFault::Unhealthy { hint, .. } | TargetFault::Gone { hint, .. } => {
                ("CDR0708", hint.clone(), Vec::new())
            }
            TargetFault::Incomplete { files, .. } => (
                "CDR0709",
                hint("look at the place's disk and permissions, then try again"),
                files.clone(),
            ),
            TargetFault::Foreign { .. } => (
                "CDR0710",
                hint("move it away, or name another directory"),
                Vec::new(),
            ),
            TargetFault::ChangedByHand { .. } => (
                "CDR0710",
                hint("save what was changed, then say --force"),
                Vec::new(),
            ),
            TargetFault::Refused { .. } => (
                "CDR0711",
                hint("name a directory of skills, such as ~/.claude/skills"),
                Vec::new(),
            ),
            TargetFault::Failed { hint, .. } => ("CDR0714", hint.clone(), Vec::new()),
        };
        Self {
            skill: skill.clone(),
            environment: Some(environment.clone()),
            code,
            what: fault.to_string(),
            hint,
            files,
        }
    }
}

/// What is known when one place is judged.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// What lies there.
    pub(crate) found: &'a Found,
    /// What is wanted there, and how.
    pub(crate) wanted: Option<(&'a Digest, Mode)>,
    /// What was put there.
    pub(crate) put: Option<&'a Put>,
    /// Which environment it is now.
    pub(crate) identity: &'a str,
    /// What becomes of changes by hand.
    pub(crate) changed: Changed,
}

/// Decides about one place.
pub(crate) fn decide(facts: &Facts<'_>) -> (Action, Vec<String>) {
    let Facts {
        found,
        wanted,
        put,
        identity,
        changed,
    } = facts;
    let by_hand = BY_HAND.to_owned();
    let is_kept = *changed == Changed::Keep;
    match (found, wanted) {
        (Found::Absent, Some(_)) => {
            let reason = match put {
                None => "it is not there yet",
                Some(put) if put.identity != *identity => "the environment was made anew since",
                Some(_) => "it was installed and is gone",
            };
            (Action::Create, vec![reason.to_owned()])
        }
        (Found::Absent, None) => (Action::Remove, vec!["it is gone already".to_owned()]),
        (Found::Foreign { what }, Some(_)) => (
            Action::Conflict,
            vec![format!("{what} is there that Conductor did not put there")],
        ),
        (Found::Foreign { what }, None) => (
            Action::Noop,
            vec![format!(
                "{what} is there that Conductor did not put there, and stays"
            )],
        ),
        (Found::Broken { why }, Some(_)) => (Action::Update, vec![why.clone()]),
        (Found::Broken { .. } | Found::Managed { .. }, None) if !matches!(found, Found::Managed { recorded, actual, mode: Mode::Copy } if recorded != actual && is_kept) => {
            (Action::Remove, vec!["it is not wanted any more".to_owned()])
        }
        (Found::Broken { .. } | Found::Managed { .. }, None) => (Action::Conflict, vec![by_hand]),
        (
            Found::Managed {
                mode,
                recorded,
                actual,
            },
            Some((digest, wanted_mode)),
        ) => {
            if actual == *digest && recorded == *digest && mode == wanted_mode {
                return (Action::Noop, Vec::new());
            }
            let is_changed = *mode == Mode::Copy && recorded != actual && actual != *digest;
            if is_changed && is_kept {
                return (Action::Conflict, vec![by_hand]);
            }
            let mut reasons = Vec::new();
            if mode != wanted_mode {
                reasons.push(format!(
                    "it is a {}, and a {} is wanted",
                    mode.word(),
                    wanted_mode.word()
                ));
            }
            if actual != *digest {
                reasons.push(if is_changed {
                    by_hand
                } else {
                    "another version is there".to_owned()
                });
            }
            if reasons.is_empty() {
                reasons.push("its marker is out of date".to_owned());
            }
            (Action::Update, reasons)
        }
    }
}
