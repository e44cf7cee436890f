//! What concerns more than one run: kill switch, registrations, provider suspensions; a stream of its own (OWN-5a).
//!
//! `admit` tells whether an effect may be dispatched now. This module does not know any single run.

mod admit;
mod refusal;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::board::BoardNumber;
use crate::digest::Digest;
use crate::egress::Grant;
use crate::id::{OperatorName, ProjectId, RepoId, RunId};
use crate::policy::{LONGEST_POLICY, LockedPolicy, PolicyLayer, PolicyScope, PolicyVersions, StoredPolicy};
use crate::spec::RepoRef;
use crate::staff::{Staff, StaffChange};
use crate::time::Timestamp;

pub use admit::{Admission, admit};
pub use refusal::InstanceRefusal;

/// Something that happens to the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "input")]
pub enum InstanceInput {
    /// An operator adds a project.
    AddProject {
        /// Who.
        by: OperatorName,
        /// Its name.
        project: ProjectId,
    },
    /// An operator registers a repository, or changes its registration.
    RegisterRepo {
        /// Who.
        by: OperatorName,
        /// The registration.
        registration: Registration,
    },
    /// An operator turns the kill switch.
    TurnKillSwitch {
        /// Who.
        by: OperatorName,
        /// On or off.
        on: bool,
    },
    /// An operator lets the sandboxes of a project reach a host (BEY-6).
    GrantEgress {
        /// Who.
        by: OperatorName,
        /// For which project.
        project: ProjectId,
        /// What may be reached.
        grant: Grant,
    },
    /// An operator takes such a grant back.
    RevokeEgress {
        /// Who.
        by: OperatorName,
        /// From which project.
        project: ProjectId,
        /// What may not be reached any more.
        grant: Grant,
    },
    /// An operator sets the policies of a project or a repository; engine's intake has read and checked the text (SEC-1).
    SetPolicy {
        /// Who.
        by: OperatorName,
        /// Where it counts.
        scope: PolicyScope,
        /// The text, kept.
        text: Artifact,
    },
    /// An operator changes who works here (SEC-7).
    ChangeStaff {
        /// Who.
        by: OperatorName,
        /// What changes.
        change: StaffChange,
    },
    /// A provider refuses work on an account until a time (BEY-5).
    ProviderLimited {
        /// The account.
        account: String,
        /// Until when.
        until: Timestamp,
    },
    /// The heads of all run chains were collected (SEC-8).
    HeadsCollected {
        /// Sequence number and hash of each.
        heads: BTreeMap<RunId, ChainHead>,
    },
}

/// The end of a run's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// The last sequence number.
    pub seq: u64,
    /// The last hash.
    pub hash: Digest,
}

/// Something that is now true of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[allow(missing_docs, reason = "the fields carry the names of their types")]
pub enum InstanceEvent {
    /// A project exists.
    ProjectAdded { by: OperatorName, project: ProjectId },
    /// A repository is registered.
    RepoRegistered {
        by: OperatorName,
        registration: Registration,
    },
    /// The kill switch was turned.
    KillSwitchTurned { by: OperatorName, on: bool },
    /// The sandboxes of a project may reach a host.
    EgressGranted {
        by: OperatorName,
        project: ProjectId,
        grant: Grant,
    },
    /// They may not any more.
    EgressRevoked {
        by: OperatorName,
        project: ProjectId,
        grant: Grant,
    },
    /// A text of policies has its next version; runs that start from now on are held to it.
    PolicySet {
        by: OperatorName,
        scope: PolicyScope,
        version: u32,
        text: Artifact,
    },
    /// Others work here, or may do something else.
    StaffChanged { by: OperatorName, change: StaffChange },
    /// An account is suspended until a time.
    ProviderSuspended { account: String, until: Timestamp },
    /// The heads of all run chains at this point.
    HeadsAnchored { heads: BTreeMap<RunId, ChainHead> },
}

impl InstanceEvent {
    /// The name in records and on pages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ProjectAdded { .. } => "project_added",
            Self::RepoRegistered { .. } => "repo_registered",
            Self::KillSwitchTurned { .. } => "kill_switch_turned",
            Self::EgressGranted { .. } => "egress_granted",
            Self::EgressRevoked { .. } => "egress_revoked",
            Self::PolicySet { .. } => "policy_set",
            Self::StaffChanged { .. } => "staff_changed",
            Self::ProviderSuspended { .. } => "provider_suspended",
            Self::HeadsAnchored { .. } => "heads_anchored",
        }
    }
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The project it belongs to.
    pub project: ProjectId,
    /// The repository.
    pub repo: RepoRef,
    /// The argv that decides whether work is right.
    pub test_command: Vec<String>,
    /// How many runs may work on it at once.
    pub slots: u32,
    /// Whether the test command may reach what the project's other sandboxes may (EXEC-3a).
    #[serde(default, skip_serializing_if = "TestEgress::is_none")]
    pub test_egress: TestEgress,
    /// The board on which agents may keep Conductor's own fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardNumber>,
}

/// Whether a test command has a way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestEgress {
    /// It has none: what passes does not depend on the network.
    #[default]
    None,
    /// It reaches what its project may reach.
    AsProject,
}

impl TestEgress {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The instance as its events tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The projects.
    pub projects: Vec<ProjectId>,
    /// The repositories, by the forge's numeric id.
    pub repos: BTreeMap<RepoId, Registration>,
    /// Whether all agent execution is switched off.
    pub kill_switch: bool,
    /// Until when each account is suspended.
    pub suspensions: BTreeMap<String, Timestamp>,
    /// What the sandboxes of each project may reach.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub egress: BTreeMap<ProjectId, Vec<Grant>>,
    /// The stored policies, each scope once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyVersions>,
    /// Who works here from afar.
    #[serde(default, skip_serializing_if = "Staff::is_empty")]
    pub staff: Staff,
}

impl Instance {
    /// What the sandboxes of a project may reach, by what was granted to it alone.
    pub fn egress_of(&self, project: &ProjectId) -> &[Grant] {
        self.egress.get(project).map_or(&[], Vec::as_slice)
    }

    /// Every version of the policies of a scope.
    pub fn policy_of(&self, scope: &PolicyScope) -> Option<&PolicyVersions> {
        self.policies.iter().find(|known| known.scope == *scope)
    }

    /// The newest texts that count for a repository of a project, in the order of their layers.
    pub fn policies_for(&self, project: &ProjectId, repo: Option<RepoId>) -> Vec<LockedPolicy> {
        let project = PolicyScope::Project {
            project: project.clone(),
        };
        let repo = repo.map(|repo| (PolicyLayer::Repository, PolicyScope::Repo { repo }));
        [(PolicyLayer::Project, project)]
            .into_iter()
            .chain(repo)
            .filter_map(|(layer, scope)| {
                let (version, stored) = self.policy_of(&scope)?.newest()?;
                Some(LockedPolicy {
                    layer,
                    version,
                    text: stored.text.clone(),
                })
            })
            .collect()
    }
}

/// Decides what follows from an input to the instance.
pub fn decide_instance(
    instance: &Instance,
    input: &InstanceInput,
) -> Result<Vec<InstanceEvent>, InstanceRefusal> {
    match input {
        InstanceInput::AddProject { by, project } => {
            if instance.projects.contains(project) {
                return Err(InstanceRefusal::ProjectExists(project.clone()));
            }
            Ok(vec![InstanceEvent::ProjectAdded {
                by: by.clone(),
                project: project.clone(),
            }])
        }
        InstanceInput::RegisterRepo { by, registration } => {
            if !instance.projects.contains(&registration.project) {
                return Err(InstanceRefusal::NoSuchProject(registration.project.clone()));
            }
            if registration.test_command.is_empty() {
                return Err(InstanceRefusal::NoTestCommand);
            }
            if registration.slots == 0 {
                return Err(InstanceRefusal::NoSlot);
            }
            match instance.repos.get(&registration.repo.id) {
                Some(known) if known.project != registration.project => Err(InstanceRefusal::RepoElsewhere {
                    repo: registration.repo.to_string(),
                    project: known.project.clone(),
                }),
                Some(known) if known == registration => Ok(vec![]),
                Some(_) | None => Ok(vec![InstanceEvent::RepoRegistered {
                    by: by.clone(),
                    registration: registration.clone(),
                }]),
            }
        }
        InstanceInput::TurnKillSwitch { by, on } => {
            if instance.kill_switch == *on {
                return Err(InstanceRefusal::SwitchStands(*on));
            }
            Ok(vec![InstanceEvent::KillSwitchTurned {
                by: by.clone(),
                on: *on,
            }])
        }
        InstanceInput::GrantEgress { by, project, grant } => {
            if !instance.projects.contains(project) {
                return Err(InstanceRefusal::NoSuchProject(project.clone()));
            }
            if instance.egress_of(project).contains(grant) {
                return Ok(vec![]);
            }
            Ok(vec![InstanceEvent::EgressGranted {
                by: by.clone(),
                project: project.clone(),
                grant: grant.clone(),
            }])
        }
        InstanceInput::RevokeEgress { by, project, grant } => {
            if !instance.egress_of(project).contains(grant) {
                return Err(InstanceRefusal::NotGranted {
                    project: project.clone(),
                    grant: grant.clone(),
                });
            }
            Ok(vec![InstanceEvent::EgressRevoked {
                by: by.clone(),
                project: project.clone(),
                grant: grant.clone(),
            }])
        }
        InstanceInput::SetPolicy { by, scope, text } => set_policy(instance, by, scope, text),
        InstanceInput::ChangeStaff { by, change } => change_staff(instance, by, change),
        InstanceInput::ProviderLimited { account, until } => {
            let later = instance
                .suspensions
                .get(account)
                .is_none_or(|known| known < until);
            Ok(if later {
                vec![InstanceEvent::ProviderSuspended {
                    account: account.clone(),
                    until: *until,
                }]
            } else {
                vec![]
            })
        }
        InstanceInput::HeadsCollected { heads } => {
            Ok(vec![InstanceEvent::HeadsAnchored { heads: heads.clone() }])
        }
    }
}

/// Changes who works here; a token for a project needs that project.
fn change_staff(
    instance: &Instance,
    by: &OperatorName,
    change: &StaffChange,
) -> Result<Vec<InstanceEvent>, InstanceRefusal> {
    let project = match change {
        StaffChange::Issue { token, .. } => token.project.as_ref(),
        StaffChange::Add { .. }
        | StaffChange::Rank { .. }
        | StaffChange::Remove { .. }
        | StaffChange::Password { .. }
        | StaffChange::SignIn { .. }
        | StaffChange::Link { .. }
        | StaffChange::Enter { .. }
        | StaffChange::Leave { .. }
        | StaffChange::SignOut { .. }
        | StaffChange::Revoke { .. } => None,
    };
    if let Some(unknown) = project.filter(|project| !instance.projects.contains(*project)) {
        return Err(InstanceRefusal::NoSuchProject(unknown.clone()));
    }
    Ok(if instance.staff.accepts(change)? {
        vec![InstanceEvent::StaffChanged {
            by: by.clone(),
            change: change.clone(),
        }]
    } else {
        vec![]
    })
}

/// Makes the next version of a scope's policies; the text that counts already is none.
fn set_policy(
    instance: &Instance,
    by: &OperatorName,
    scope: &PolicyScope,
    text: &Artifact,
) -> Result<Vec<InstanceEvent>, InstanceRefusal> {
    match scope {
        PolicyScope::Project { project } if !instance.projects.contains(project) => {
            return Err(InstanceRefusal::NoSuchProject(project.clone()));
        }
        PolicyScope::Repo { repo } if !instance.repos.contains_key(repo) => {
            return Err(InstanceRefusal::NoSuchRepo(*repo));
        }
        PolicyScope::Project { .. } | PolicyScope::Repo { .. } => {}
    }
    if text.truncated || text.bytes > LONGEST_POLICY {
        return Err(InstanceRefusal::PolicyTooLong);
    }
    let newest = instance.policy_of(scope).and_then(PolicyVersions::newest);
    if newest.is_some_and(|(_, stored)| stored.text == *text) {
        return Ok(vec![]);
    }
    Ok(vec![InstanceEvent::PolicySet {
        by: by.clone(),
        scope: scope.clone(),
        version: newest.map_or(1, |(version, _)| version + 1),
        text: text.clone(),
    }])
}

/// Folds an event into the instance.
pub fn evolve_instance(mut instance: Instance, event: &InstanceEvent) -> Instance {
    match event {
        InstanceEvent::ProjectAdded { project, .. } => instance.projects.push(project.clone()),
        InstanceEvent::RepoRegistered { registration, .. } => {
            instance.repos.insert(registration.repo.id, registration.clone());
        }
        InstanceEvent::KillSwitchTurned { on, .. } => instance.kill_switch = *on,
        InstanceEvent::ProviderSuspended { account, until } => {
            instance.suspensions.insert(account.clone(), *until);
        }
        InstanceEvent::EgressGranted { project, grant, .. } => {
            let granted = instance.egress.entry(project.clone()).or_default();
            granted.push(grant.clone());
        }
        InstanceEvent::EgressRevoked { project, grant, .. } => {
            if let Some(granted) = instance.egress.get_mut(project) {
                granted.retain(|known| known != grant);
            }
            instance.egress.retain(|_project, granted| !granted.is_empty());
        }
        InstanceEvent::PolicySet { by, scope, text, .. } => {
            let stored = StoredPolicy {
                by: by.clone(),
                text: text.clone(),
            };
            match instance.policies.iter_mut().find(|known| known.scope == *scope) {
                Some(known) => known.versions.push(stored),
                None => instance.policies.push(PolicyVersions {
                    scope: scope.clone(),
                    versions: vec![stored],
                }),
            }
        }
        InstanceEvent::StaffChanged { change, .. } => instance.staff.fold(change),
        InstanceEvent::HeadsAnchored { .. } => {}
    }
    instance
}
