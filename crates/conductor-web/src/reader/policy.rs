//! Reads stored policies: the list, the texts of one place, and what counts there together.
//!
//! This module does not know what a policy says.

use conductor_domain::id::ProjectId;
use conductor_domain::instance::{Instance, InstanceRefusal};
use conductor_domain::policy::{LockedPolicy, PolicyLayer, PolicyScope};

use super::{Reader, find_registration};
use crate::api::{PolicyList, PolicyPlace, PolicyView, VersionList, VersionView};
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

    /// Lists all versions of the text of one project or repository, newest first; none where nothing was ever stored.
    pub async fn policy_versions(&self, place: &PolicyPlace) -> Result<VersionList, Error> {
        let (instance, _) = self.views.instance().await?;
        let scope = scope_of(&instance, place)?;
        let stored = instance.policy_of(&scope).map(|known| known.versions.as_slice());
        let versions = stored.unwrap_or_default().iter().zip(1..);
        let versions = versions.map(|(stored, version)| VersionView {
            version,
            by: stored.by.clone(),
            text: stored.text.digest.clone(),
        });
        let mut versions: Vec<VersionView> = versions.collect();
        versions.reverse();
        Ok(VersionList { versions })
    }

    /// Finds with which texts a new one of a project or a repository would count: its own layer, and below it every set
    /// that it would stand among.
    pub async fn policies_around(
        &self,
        place: &PolicyPlace,
    ) -> Result<(PolicyLayer, Vec<Vec<LockedPolicy>>), Error> {
        let (instance, _) = self.views.instance().await?;
        let scope = scope_of(&instance, place)?;
        let (layer, mut sets) = match &scope {
            PolicyScope::Project { project } => {
                let repos = instance.repos.values().filter(|known| known.project == *project);
                let sets = repos.map(|known| instance.policies_for(project, Some(known.repo.id)));
                (
                    PolicyLayer::Project,
                    std::iter::once(vec![]).chain(sets).collect(),
                )
            }
            PolicyScope::Repo { repo } => {
                let project = instance.repos.get(repo).map(|known| &known.project);
                let below = project.map_or_else(Vec::new, |project| instance.policies_for(project, None));
                (PolicyLayer::Repository, vec![below])
            }
        };
        for set in &mut sets {
            set.retain(|known: &LockedPolicy| known.layer != layer);
        }
        Ok((layer, sets))
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

/// The scope that a place names; a text is stored for a project or a repository.
fn scope_of(instance: &Instance, place: &PolicyPlace) -> Result<PolicyScope, Error> {
    match (&place.project, &place.repo) {
        (Some(project), None) => {
            let project = ProjectId::parse(project.clone()).map_err(|error| Error::Invalid {
                what: error.to_string(),
            })?;
            if !instance.projects.contains(&project) {
                return Err(InstanceRefusal::NoSuchProject(project).into());
            }
            Ok(PolicyScope::Project { project })
        }
        (None, Some(name)) => {
            let known = find_registration(instance.clone(), name)
                .ok_or_else(|| StartRefusal::RepoNotRegistered(name.clone()))?;
            Ok(PolicyScope::Repo { repo: known.repo.id })
        }
        (Some(_), Some(_)) | (None, None) => Err(Error::Invalid {
            what: "name a project or a repository, one of both".to_owned(),
        }),
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
