//! Reads stored policies: the list, the texts of one place, and what counts there together.
//!
//! This module does not know what a policy says.

use conductor_domain::id::ProjectId;
use conductor_domain::instance::{Instance, InstanceRefusal};
use conductor_domain::policy::{LockedPolicy, PolicyLayer, PolicyScope};

use super::{Reader, find_registration};
use crate::api::{PolicyList, PolicyPlace, PolicyView};
use crate::error::{Error, StartRefusal};

impl Reader {
    /// Lists the stored policies.
    pub async fn policies(&self) -> Result<PolicyList, Error> {
        let (instance, _) = self.views.instance().await?;
        let policies = instance.policies.iter().filter_map(|known| {
            let (version, stored) = known.newest()?;
            let (layer, project, repo) = match &known.scope {
                PolicyScope::Project { project } => (PolicyLayer::Project, project.clone(), None),
                PolicyScope::Repo { repo } => {
                    let known = instance.repos.get(repo)?;
                    let name = Some(known.repo.to_string());
                    (PolicyLayer::Repository, known.project.clone(), name)
                }
            };
            Some(PolicyView {
                layer,
                project,
                repo,
                version,
                text: stored.text.digest.clone(),
                by: stored.by.clone(),
            })
        });
        Ok(PolicyList {
            policies: policies.collect(),
        })
    }

    /// Finds what a person wants to read: the one text of a project or a repository, or all that a run is held to;
    /// nothing where Conductor's own are meant.
    pub async fn policies_shown(&self, place: &PolicyPlace) -> Result<Vec<LockedPolicy>, Error> {
        let counting = self.policies_counting(place).await?;
        if place.run.is_some() {
            return Ok(counting);
        }
        let layer = match (&place.project, &place.repo) {
            (_, Some(_)) => PolicyLayer::Repository,
            (Some(_), None) => PolicyLayer::Project,
            (None, None) => return Ok(vec![]),
        };
        let shown: Vec<LockedPolicy> = counting
            .into_iter()
            .filter(|known| known.layer == layer)
            .collect();
        if shown.is_empty() {
            return Err(Error::NotFound {
                what: format!("stored policy of this {layer}; what it inherits counts"),
            });
        }
        Ok(shown)
    }

    /// Finds the texts that count somewhere together, in the order of their layers; Conductor's own stand below them.
    pub async fn policies_counting(&self, place: &PolicyPlace) -> Result<Vec<LockedPolicy>, Error> {
        if let Some(run) = &place.run {
            return Ok(self.state(run).await?.1.spec.policies);
        }
        let (instance, _) = self.views.instance().await?;
        let (project, repo) = match (&place.project, &place.repo) {
            (None, None) => return Ok(vec![]),
            (Some(project), None) => {
                let project = ProjectId::parse(project.clone()).map_err(|error| Error::Invalid {
                    what: error.to_string(),
                })?;
                if !instance.projects.contains(&project) {
                    return Err(InstanceRefusal::NoSuchProject(project).into());
                }
                (project, None)
            }
            (_, Some(name)) => {
                let known = find_registration(instance.clone(), name)
                    .ok_or_else(|| StartRefusal::RepoNotRegistered(name.clone()))?;
                (known.project, Some(known.repo.id))
            }
        };
        let mut counting = instance.policies_for(&project, repo);
        let (layer, scope) = match repo {
            Some(repo) => (PolicyLayer::Repository, PolicyScope::Repo { repo }),
            None => (PolicyLayer::Project, PolicyScope::Project { project }),
        };
        if let Some(version) = place.version {
            let at = version_of(&instance, layer, &scope, version)?;
            counting.retain(|known| known.layer != layer);
            counting.push(at);
        }
        Ok(counting)
    }
}

fn version_of(
    instance: &Instance,
    layer: PolicyLayer,
    scope: &PolicyScope,
    version: u32,
) -> Result<LockedPolicy, Error> {
    let stored = instance
        .policy_of(scope)
        .and_then(|versions| versions.version(version));
    let stored = stored.ok_or_else(|| Error::NotFound {
        what: format!("version {version} of this {layer}'s policies"),
    })?;
    Ok(LockedPolicy {
        layer,
        version,
        text: stored.text.clone(),
    })
}
