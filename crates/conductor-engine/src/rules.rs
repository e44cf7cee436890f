//! Finds the policies that a run is held to, and checks texts before they are stored (SEC-1).
//!
//! A run is held to the texts that it locked when it started; what was stored later does not concern it. This module does
//! not know what a policy says, nor who asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use conductor_domain::artifact::Artifact;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::instance::{Instance, InstanceRefusal};
use conductor_domain::policy::{LockedPolicy, PolicyLayer, PolicyScope};
use conductor_domain::spec::{PolicyVersion, RunSpec};
use conductor_policy::authority::{Authority, SHIPPED, address};
use conductor_port::blobs::Blobs;
use conductor_port::known;

use crate::engine::Engine;

/// How many compiled sets are remembered; runs of one repository mostly share one.
const REMEMBERED: usize = 64;

/// Compiled policies by the version that runs name.
#[derive(Debug, Default)]
pub(crate) struct Compiled(Mutex<BTreeMap<String, Arc<Authority>>>);

impl Compiled {
    fn find(&self, version: &PolicyVersion) -> Option<Arc<Authority>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&version.0).cloned()
    }

    fn remember(&self, version: &PolicyVersion, authority: &Arc<Authority>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(version.0.clone(), Arc::clone(authority));
    }
}

/// Finds the policies that a run is held to; a run that locked none is held to those of this process.
pub(crate) async fn of_run(engine: &Engine, spec: &RunSpec) -> Result<Arc<Authority>, Fault> {
    if spec.policies.is_empty() {
        return Ok(Arc::clone(&engine.options.authority));
    }
    let texts = spec.policies.iter();
    let locked = address(texts.map(|policy| (policy.layer, policy.text.digest.clone())));
    // A name must not stand for other texts than those that the run carries.
    if locked.as_str() != spec.policy.0 {
        return Err(Fault::permanent(format!(
            "run {} was started with policies {} and locked {locked}",
            spec.run, spec.policy.0
        )));
    }
    if let Some(known) = engine.compiled.find(&spec.policy) {
        return Ok(known);
    }
    let compiled = compile(engine.ports.blobs.as_ref(), &spec.policies).await?;
    let authority = compiled.map_err(|flaws| unusable(spec, &flaws))?;
    // What was kept under these addresses must be what the run was started with.
    if *authority.version() != locked {
        return Err(Fault::permanent(format!(
            "the policies that run {} locked as {locked} are kept as {}",
            spec.run,
            authority.version()
        )));
    }
    let authority = Arc::new(authority);
    engine.compiled.remember(&spec.policy, &authority);
    Ok(authority)
}

/// Tells whether a run that starts locked what counts for its repository now: Conductor's own text, every stored one, and at
/// most one of its own over them.
pub(crate) fn are_current(spec: &RunSpec, instance: &Instance) -> bool {
    let stored = instance.policies_for(&spec.project, Some(spec.repo.id));
    let (own, others): (Vec<&LockedPolicy>, Vec<&LockedPolicy>) = spec
        .policies
        .iter()
        .partition(|locked| locked.layer == PolicyLayer::Run);
    match others.split_first() {
        None => own.is_empty() && stored.is_empty(),
        Some((shipped, others)) => {
            own.len() <= 1
                && shipped.layer == PolicyLayer::Shipped
                && shipped.text.digest == Digest::of(SHIPPED.as_bytes())
                && others.iter().copied().eq(&stored)
        }
    }
}

/// Finds the policies that say whether a run may start: all that it locked but its own, which its starter wrote.
pub(crate) async fn of_start(engine: &Engine, spec: &RunSpec) -> Result<Arc<Authority>, Fault> {
    let all = of_run(engine, spec).await?;
    if spec
        .policies
        .iter()
        .all(|locked| locked.layer != PolicyLayer::Run)
    {
        return Ok(all);
    }
    let others: Vec<LockedPolicy> = spec
        .policies
        .iter()
        .filter(|locked| locked.layer != PolicyLayer::Run)
        .cloned()
        .collect();
    let compiled = compile(engine.ports.blobs.as_ref(), &others).await?;
    Ok(Arc::new(compiled.map_err(|flaws| unusable(spec, &flaws))?))
}

fn unusable(spec: &RunSpec, flaws: &[String]) -> Fault {
    Fault::permanent(format!(
        "the policies that run {} locked cannot be used: {}",
        spec.run,
        flaws.join("; ")
    ))
}

/// Reads and compiles texts that count together, or says what is wrong with them.
pub async fn compile(
    blobs: &dyn Blobs,
    locked: &[LockedPolicy],
) -> Result<Result<Authority, Vec<String>>, Fault> {
    let mut texts = Vec::with_capacity(locked.len());
    for policy in locked {
        texts.push((policy.layer, text(blobs, &policy.text).await?));
    }
    let layers: Vec<(PolicyLayer, &str)> = texts
        .iter()
        .map(|(layer, text)| (*layer, text.as_str()))
        .collect();
    Ok(Authority::locked(&layers).map_err(|flaws| flaws.iter().map(ToString::to_string).collect()))
}

/// Checks a text where it would count, with everything above and below it (SEC-1: validated before it is saved).
pub(crate) async fn check(
    engine: &Engine,
    instance: &Instance,
    scope: &PolicyScope,
    new: &Artifact,
) -> Result<Result<(), InstanceRefusal>, Fault> {
    let blobs = engine.ports.blobs.as_ref();
    let layer = match scope {
        PolicyScope::Project { .. } => PolicyLayer::Project,
        PolicyScope::Repo { .. } => PolicyLayer::Repository,
    };
    let mut together: Vec<Vec<LockedPolicy>> = vec![];
    match scope {
        PolicyScope::Project { project } => {
            together.push(vec![]);
            let repos = instance.repos.values().filter(|known| known.project == *project);
            together.extend(repos.map(|known| instance.policies_for(project, Some(known.repo.id))));
        }
        PolicyScope::Repo { repo } => {
            let project = instance.repos.get(repo).map(|known| &known.project);
            together.push(project.map_or_else(Vec::new, |project| instance.policies_for(project, None)));
        }
    }
    for mut layers in together {
        layers.retain(|known| known.layer != layer);
        layers.push(LockedPolicy {
            layer,
            version: 0,
            text: new.clone(),
        });
        let mut texts = Vec::with_capacity(layers.len());
        for known in &layers {
            texts.push((known.layer, text(blobs, &known.text).await?));
        }
        let layers: Vec<(PolicyLayer, &str)> = texts
            .iter()
            .map(|(layer, text)| (*layer, text.as_str()))
            .collect();
        if let Err(flaws) = Authority::new(&layers) {
            return Ok(Err(InstanceRefusal::PolicyInvalid {
                flaws: flaws.iter().map(ToString::to_string).collect(),
            }));
        }
    }
    Ok(Ok(()))
}

async fn text(blobs: &dyn Blobs, artifact: &Artifact) -> Result<String, Fault> {
    let bytes = blobs
        .get(&artifact.digest)
        .await?
        .ok_or_else(|| Fault::permanent(format!("policy {} {}", artifact.digest, known::NOT_KEPT)))?;
    String::from_utf8(bytes).map_err(|_| Fault::permanent(format!("policy {} is not text", artifact.digest)))
}
