//! Tells in one sentence what became true of the instance, for people who look who did what.
//!
//! This module does not know runs.

use conductor_domain::instance::InstanceEvent;
use conductor_domain::policy::PolicyScope;
use conductor_domain::staff::{Holder, StaffChange};

/// Tells an event, where it is somebody's doing.
pub(super) fn tell(event: &InstanceEvent) -> Option<String> {
    Some(match event {
        InstanceEvent::ProjectAdded { by, project } => format!("{by} added project {project}"),
        InstanceEvent::RepoRegistered { by, registration } => {
            format!(
                "{by} registered {} for project {}",
                registration.repo, registration.project
            )
        }
        InstanceEvent::KillSwitchTurned { by, on } => {
            format!("{by} turned the kill switch {}", if *on { "on" } else { "off" })
        }
        InstanceEvent::EgressGranted { by, project, grant } => {
            format!("{by} let project {project} reach {grant}")
        }
        InstanceEvent::EgressRevoked { by, project, grant } => {
            format!("{by} lets project {project} reach {grant} no more")
        }
        InstanceEvent::PolicySet {
            by, scope, version, ..
        } => match scope {
            PolicyScope::Project { project } => {
                format!("{by} set the policies of project {project}, version {version}")
            }
            PolicyScope::Repo { repo } => {
                format!("{by} set the policies of repository {repo}, version {version}")
            }
        },
        InstanceEvent::StaffChanged { by, change } => staff(by.as_str(), change),
        InstanceEvent::ProviderSuspended { .. } | InstanceEvent::HeadsAnchored { .. } => return None,
    })
}

fn staff(by: &str, change: &StaffChange) -> String {
    match change {
        StaffChange::Add { operator, rank } => format!("{by} added {operator} as {rank}"),
        StaffChange::Rank { operator, rank } => format!("{by} made {operator} {rank}"),
        StaffChange::Remove { operator } => format!("{by} removed {operator}"),
        StaffChange::Password { operator } => format!("{by} set a new password of {operator}"),
        StaffChange::SignIn { operator } => format!("{operator} came in with a password"),
        StaffChange::Link { holder } => format!("{by} made a link that lets {} in", named(holder)),
        StaffChange::Enter { holder } => format!("{} came in by a link", named(holder)),
        StaffChange::Leave { holder } => format!("{} left", named(holder)),
        StaffChange::SignOut { holder } => format!("{by} signed {} out everywhere", named(holder)),
        StaffChange::Issue { id, token } => {
            format!("{by} issued token {id} to {} as {}", token.operator, token.rank)
        }
        StaffChange::Revoke { id } => format!("{by} revoked token {id}"),
    }
}

fn named(holder: &Holder) -> String {
    match holder {
        Holder::Owner(name) => format!("{name} (owner)"),
        Holder::Operator(name) => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::OperatorName;

    use super::*;

    /// SEC-7: who came, who left and who was sent away is told by name, and the owner from an operator of that name.
    #[test]
    fn coming_and_going_is_told_by_name() {
        let name = |name: &str| OperatorName::parse(name).expect("a name");
        let told = |change| {
            tell(&InstanceEvent::StaffChanged {
                by: name("ann"),
                change,
            })
        };
        for (change, expected) in [
            (
                StaffChange::Enter {
                    holder: Holder::Owner(name("ann")),
                },
                "ann (owner) came in by a link",
            ),
            (
                StaffChange::SignOut {
                    holder: Holder::Operator(name("bob")),
                },
                "ann signed bob out everywhere",
            ),
            (
                StaffChange::SignIn {
                    operator: name("bob"),
                },
                "bob came in with a password",
            ),
        ] {
            assert_eq!(told(change).as_deref(), Some(expected));
        }
    }
}
