//! Brings targets to what is wanted: looks everywhere at once, then stages, then puts and takes, then writes the lock.
//!
//! Looking and doing share [`plan::decide`]; doing goes through the same adapters that looked. This module does not know
//! who asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use conductor_port::target::{Changed, Found, Mode, Placement, TargetFault};
use conductor_port::upstream::Upstream;
use serde::Serialize;

use crate::concurrent::each;
use crate::config::{self, Config, Skill};
use crate::environment::Environment;
use crate::lock::{Lock, Locked, Put};
use crate::name::SkillName;
use crate::plan::{self, Action, Facts, Item, Trouble};
use crate::registry::Nothing;
use crate::resolve::{self, Freshness, Resolved, resolve};
use crate::store::Store;
use crate::targets::{Surroundings, Targets};

mod perform;

use perform::{Remember, perform};

/// Everything that a command works with.
#[derive(Debug)]
pub struct Work {
    /// What is wanted.
    pub config: Config,
    /// What was put where.
    pub lock: Lock,
    /// What adapters need to know of this machine.
    pub around: Surroundings,
    /// Where git sources come from.
    pub upstream: Arc<dyn Upstream>,
}

/// What a command is about.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Only these skills; all when there are none.
    pub skills: Vec<SkillName>,
    /// Only these environments; all when there are none.
    pub environments: Vec<Environment>,
    /// What becomes of changes by hand.
    pub changed: Changed,
    /// Whether what is locked will do.
    pub freshness: Freshness,
}

/// What would have to be done.
#[derive(Debug)]
pub struct Plan {
    /// Place by place.
    pub items: Vec<Item>,
    /// What could not be looked at.
    pub troubles: Vec<Trouble>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// The content of the skills that are wanted.
    pub resolved: BTreeMap<SkillName, Resolved>,
    targets: Targets,
}

/// What became of one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was nothing to do.
    Unchanged,
    /// Something is in the way, and stays.
    Skipped,
    /// It did not work.
    Failed,
}

/// One place and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Done {
    /// What was to be done.
    #[serde(flatten)]
    pub item: Item,
    /// What became of it.
    pub outcome: Outcome,
}

/// Hears of every place when it is done.
pub type Tell = Arc<dyn Fn(&Done) + Send + Sync>;

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Place by place.
    pub items: Vec<Done>,
    /// What did not work.
    pub failures: Vec<Trouble>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl Scope {
    /// Tells whether a skill is meant in any of its places.
    pub fn has_any(&self, skill: &Skill) -> bool {
        let mut environments = skill.targets.iter().map(|target| &target.environment);
        let is_meant = self.skills.is_empty() || self.skills.contains(&skill.name);
        let is_there = self.environments.is_empty()
            || environments.any(|environment| self.environments.contains(environment));
        is_meant && is_there
    }

    /// Tells whether a skill is meant in an environment.
    pub fn has(&self, name: &SkillName, environment: &Environment) -> bool {
        (self.skills.is_empty() || self.skills.contains(name))
            && (self.environments.is_empty() || self.environments.contains(environment))
    }
}

impl Work {
    /// Finds out what would have to be done. Changes nothing.
    pub async fn plan(&self, scope: &Scope) -> Plan {
        let wanted: Vec<Skill> = self
            .config
            .skills
            .iter()
            .filter(|skill| scope.skills.is_empty() || scope.skills.contains(&skill.name))
            .cloned()
            .collect();
        let answers = resolve(&self.config, &self.lock, &self.upstream, wanted, scope.freshness).await;
        let mut troubles = Vec::new();
        let mut warnings = Vec::new();
        let mut resolved = BTreeMap::new();
        for (name, answer) in answers {
            match answer {
                Ok(done) => {
                    warnings.extend(done.problems.iter().map(|problem| format!("{name}: {problem}")));
                    resolved.insert(name, done);
                }
                Err(error) => troubles.push(unresolved(&name, &error)),
            }
        }
        let wishes = self.wishes(scope);
        let environments: BTreeSet<Environment> =
            wishes.iter().map(|wish| wish.environment.clone()).collect();
        let targets = Targets::open(environments, &self.around, self.config.concurrency).await;
        let mut plan = Plan {
            items: Vec::new(),
            troubles,
            warnings,
            resolved,
            targets,
        };
        self.judge(&mut plan, wishes, scope).await;
        plan.items
            .sort_by(|a, b| (&a.skill, &a.environment, &a.path).cmp(&(&b.skill, &b.environment, &b.path)));
        plan
    }

    /// Every place that is wanted, then every place that was put and is wanted no more.
    fn wishes(&self, scope: &Scope) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for skill in &self.config.skills {
            for target in skill
                .targets
                .iter()
                .filter(|target| scope.has(&skill.name, &target.environment))
            {
                wishes.push(Wish {
                    skill: skill.name.clone(),
                    environment: target.environment.clone(),
                    root: Ok(target.root.clone()),
                    mode: match target.environment {
                        Environment::Local => skill.mode,
                        Environment::Docker(_) => Mode::Copy,
                    },
                });
            }
        }
        for locked in &self.lock.skills {
            for put in locked
                .targets
                .iter()
                .filter(|put| scope.has(&locked.id, &put.environment))
            {
                wishes.push(Wish {
                    skill: locked.id.clone(),
                    environment: put.environment.clone(),
                    root: Err(put.clone()),
                    mode: put.mode,
                });
            }
        }
        wishes
    }

    async fn judge(&self, plan: &mut Plan, wishes: Vec<Wish>, scope: &Scope) {
        let mut places: BTreeMap<Environment, Vec<(Wish, Placement)>> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for wish in wishes {
            let judged = plan
                .targets
                .get(&wish.environment)
                .and_then(|open| match &wish.root {
                    Ok(root) => open.placement(root, &wish.skill),
                    Err(put) => put.placement(&wish.skill).map_err(|error| TargetFault::Refused {
                        path: error.path.clone(),
                        why: error.why.to_owned(),
                    }),
                });
            match judged {
                Ok(place) => {
                    // A place that is wanted is not judged a second time for having been put.
                    if taken.insert((wish.environment.clone(), place.clone())) {
                        places
                            .entry(wish.environment.clone())
                            .or_default()
                            .push((wish, place));
                    }
                }
                Err(fault) => {
                    let mut trouble = Trouble::of(&wish.skill, &wish.environment, &fault);
                    if let (Err(put), TargetFault::Gone { .. }) = (&wish.root, &fault)
                        && !self.is_wanted_in(&wish.skill, &wish.environment)
                    {
                        if let (Changed::Discard, Ok(place)) = (scope.changed, put.placement(&wish.skill)) {
                            plan.items.push(forgotten(wish, place));
                            continue;
                        }
                        "say --force to forget what was put there".clone_into(&mut trouble.hint);
                    }
                    if !plan.troubles.contains(&trouble) {
                        plan.troubles.push(trouble);
                    }
                }
            }
        }
        let looks: Vec<_> = places
            .into_iter()
            .filter_map(|(environment, wishes)| {
                let open = plan.targets.get(&environment).ok()?.clone();
                Some(async move {
                    let placements: Vec<Placement> = wishes.iter().map(|(_, place)| place.clone()).collect();
                    let found = open.adapter.inspect(&placements).await;
                    (wishes, open.vitals.identity, found)
                })
            })
            .collect();
        for (wishes, identity, found) in each(self.config.concurrency, looks).await {
            match found {
                Ok(found) => {
                    for ((wish, place), found) in wishes.into_iter().zip(found) {
                        plan.items
                            .extend(self.item(plan, wish, place, &found, &identity, scope.changed));
                    }
                }
                Err(fault) => plan.troubles.extend(
                    wishes
                        .iter()
                        .map(|(wish, _)| Trouble::of(&wish.skill, &wish.environment, &fault)),
                ),
            }
        }
    }

    fn is_wanted_in(&self, name: &SkillName, environment: &Environment) -> bool {
        self.config
            .skills
            .iter()
            .filter(|skill| skill.name == *name)
            .flat_map(|skill| &skill.targets)
            .any(|target| target.environment == *environment)
    }

    fn item(
        &self,
        plan: &Plan,
        wish: Wish,
        placement: Placement,
        found: &Found,
        identity: &str,
        changed: Changed,
    ) -> Option<Item> {
        let path = placement.path();
        let wanted = match &wish.root {
            // A skill whose content is not known is in trouble already.
            Ok(_) => Some(plan.resolved.get(&wish.skill)?.digest.clone()),
            Err(_) => None,
        };
        let put = self.lock.skill(&wish.skill).and_then(|locked| {
            locked
                .targets
                .iter()
                .find(|put| put.environment == wish.environment && put.path == path)
        });
        let facts = Facts {
            found,
            wanted: wanted.as_ref().map(|digest| (digest, wish.mode)),
            put,
            identity,
            changed,
        };
        let (action, reasons) = plan::decide(&facts);
        Some(Item {
            skill: wish.skill,
            environment: wish.environment,
            path: path.display().to_string(),
            mode: wish.mode,
            action,
            reasons,
            wanted,
            placement,
        })
    }

    /// Does what a plan says, and remembers it. `tell` hears of every place when it is done.
    pub async fn apply(&mut self, plan: Plan, changed: Changed, tell: Tell) -> Result<Report, config::Error> {
        let store = Store::new(self.config.storage.clone());
        let mut report = Report {
            items: Vec::new(),
            failures: plan.troubles,
            warnings: plan.warnings,
        };
        let needed: BTreeSet<&SkillName> = plan
            .items
            .iter()
            .filter(|item| matches!(item.action, Action::Create | Action::Update))
            .map(|item| &item.skill)
            .collect();
        let wanted: Vec<_> = plan
            .resolved
            .iter()
            .filter(|(name, _resolved)| needed.contains(name))
            .map(|(name, resolved)| stage(&store, name, resolved))
            .collect();
        let mut staged: BTreeMap<SkillName, PathBuf> = BTreeMap::new();
        for (name, stage) in each(self.config.concurrency, wanted).await {
            match stage {
                Ok(path) => drop(staged.insert(name, path)),
                Err(error) => report.failures.push(unresolved(&name, &error)),
            }
        }
        let work: Vec<_> = plan
            .items
            .into_iter()
            .map(|item| {
                let open = plan.targets.get(&item.environment).cloned();
                let source = staged.get(&item.skill).cloned();
                let tell = Arc::clone(&tell);
                async move {
                    let step = perform(&item, open, source, changed).await;
                    tell(&Done {
                        item: item.clone(),
                        outcome: step.outcome.clone(),
                    });
                    (item, step)
                }
            })
            .collect();
        for (item, step) in each(self.config.concurrency, work).await {
            report.warnings.extend(step.warnings);
            report.failures.extend(step.trouble);
            self.remember(&item, &step.put, plan.resolved.get(&item.skill));
            report.items.push(Done {
                item,
                outcome: step.outcome,
            });
        }
        self.forget();
        self.lock.write(&Lock::beside(&self.config.file))?;
        Ok(report)
    }

    fn remember(&mut self, item: &Item, put: &Remember, resolved: Option<&Resolved>) {
        let path = item.placement.path();
        let is_here = |put: &Put| put.environment == item.environment && put.path == path;
        let index = self.lock.skills.iter().position(|locked| locked.id == item.skill);
        match put {
            Remember::Nothing => {}
            Remember::Gone => {
                if let Some(index) = index {
                    self.lock.skills[index].targets.retain(|put| !is_here(put));
                }
            }
            Remember::Put(put) => {
                let Some(resolved) = resolved else { return };
                let mut targets = index
                    .map(|index| self.lock.skills.remove(index).targets)
                    .unwrap_or_default();
                targets.retain(|put| !is_here(put));
                targets.push(put.clone());
                self.lock.skills.push(Locked {
                    id: item.skill.clone(),
                    source: resolved.skill.source.to_string(),
                    resolved_commit: resolved.commit.clone(),
                    resolved_version: resolved.version.clone(),
                    digest: resolved.digest.clone(),
                    targets,
                });
            }
        }
    }

    /// A skill that is neither wanted nor anywhere is no longer known.
    fn forget(&mut self) {
        let wanted: Vec<&SkillName> = self.config.skills.iter().map(|skill| &skill.name).collect();
        self.lock
            .skills
            .retain(|locked| !locked.targets.is_empty() || wanted.contains(&&locked.id));
    }
}

/// One place, wanted below a root or put at a path.
struct Wish {
    skill: SkillName,
    environment: Environment,
    root: Result<String, Put>,
    mode: Mode,
}

/// A place that went with its environment, which a person wants to hear of no more.
fn forgotten(wish: Wish, placement: Placement) -> Item {
    Item {
        skill: wish.skill,
        environment: wish.environment,
        path: placement.path().display().to_string(),
        mode: wish.mode,
        action: Action::Remove,
        reasons: vec!["its environment does not exist any more".to_owned()],
        wanted: None,
        placement,
    }
}

/// Stages one skill where waiting for the disk keeps nobody else waiting.
fn stage(
    store: &Store,
    name: &SkillName,
    resolved: &Resolved,
) -> impl Future<Output = (SkillName, Result<PathBuf, resolve::Error>)> + Send + 'static {
    let (store, name) = (store.clone(), name.clone());
    let (tree, digest) = (Arc::clone(&resolved.tree), resolved.digest.clone());
    async move {
        let staged = {
            let name = name.clone();
            tokio::task::spawn_blocking(move || store.put(&name, &tree, &digest)).await
        };
        let staged = match staged {
            Ok(staged) => staged.map_err(resolve::Error::Tree),
            Err(error) => Err(resolve::Error::Scratch(std::io::Error::other(error))),
        };
        (name, staged)
    }
}

fn unresolved(name: &SkillName, error: &resolve::Error) -> Trouble {
    let mut what = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        what.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    let (code, hint) = match error {
        resolve::Error::Invalid(_) | resolve::Error::Tree(_) => ("CDR0706", "mend the skill at its source"),
        resolve::Error::Registry(Nothing::Unknown(_)) => (
            "CDR0716",
            "a directory is written as ./NAME; the index of a registry is had by `conductor skills update`",
        ),
        resolve::Error::Registry(_) => (
            "CDR0716",
            "run `conductor skills update` first, or correct the version",
        ),
        resolve::Error::Upstream(_) => ("CDR0705", "check the address, the ref and the network"),
        resolve::Error::Scratch(_) => ("CDR0714", "free some space in the temporary directory"),
        resolve::Error::Missing(_) => ("CDR0705", "correct the path of the source"),
    };
    Trouble {
        skill: name.clone(),
        environment: None,
        code,
        what: format!("{name}: {what}"),
        hint: hint.to_owned(),
        files: Vec::new(),
    }
}
