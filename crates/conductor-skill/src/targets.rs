//! The environments that a command works in: one adapter each, asked once whether it is well.
//!
//! The factory is one `match` on the environment of the file; nothing is sniffed. This module does not know what is put
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use conductor_port::target::{Placement, TargetAdapter, TargetFault, Vitals};

use crate::concurrent::each;
use crate::docker::{Docker, DockerAdapter};
use crate::environment::Environment;
use crate::local::LocalAdapter;
use crate::name::SkillName;

/// What adapters need to know of this machine.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The home directory: `HOME`, else `USERPROFILE`.
    pub home: Option<PathBuf>,
    /// Where staged skills lie.
    pub store: PathBuf,
    /// The environment of this process, for the docker program.
    pub environment: Vec<(OsString, OsString)>,
}

/// Makes the adapter of an environment.
pub fn adapter(
    environment: &Environment,
    around: &Surroundings,
) -> Result<Arc<dyn TargetAdapter>, TargetFault> {
    Ok(match environment {
        Environment::Local => Arc::new(LocalAdapter::new(around.home.clone(), around.store.clone())),
        Environment::Docker(name) => Arc::new(DockerAdapter::new(
            Docker::find(&around.environment)?,
            name.clone(),
        )),
    })
}

/// An environment that is well.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) adapter: Arc<dyn TargetAdapter>,
    pub(crate) vitals: Vitals,
}

/// Every environment of a command, well or not.
#[derive(Debug)]
pub(crate) struct Targets(BTreeMap<Environment, Result<Open, TargetFault>>);

impl Targets {
    /// Makes the adapters and asks each whether its environment is well, several at once.
    pub(crate) async fn open(
        environments: BTreeSet<Environment>,
        around: &Surroundings,
        limit: usize,
    ) -> Self {
        let work: Vec<_> = environments
            .into_iter()
            .map(|environment| {
                let made = adapter(&environment, around);
                async move {
                    let opened = match made {
                        Ok(adapter) => adapter
                            .health_check()
                            .await
                            .map(|vitals| Open { adapter, vitals }),
                        Err(fault) => Err(fault),
                    };
                    (environment, opened)
                }
            })
            .collect();
        Self(each(limit, work).await.into_iter().collect())
    }

    /// One environment.
    pub(crate) fn get(&self, environment: &Environment) -> Result<&Open, TargetFault> {
        match self.0.get(environment) {
            Some(Ok(open)) => Ok(open),
            Some(Err(fault)) => Err(fault.clone()),
            None => Err(TargetFault::Failed {
                what: format!("{environment} was not asked"),
                hint: "report this".to_owned(),
            }),
        }
    }
}

impl Open {
    /// The place of a skill below a directory as it is written in the file.
    pub(crate) fn placement(&self, root: &str, name: &SkillName) -> Result<Placement, TargetFault> {
        let refused = |path: String, why: String| TargetFault::Refused { path, why };
        let root = match (root.strip_prefix('~'), &self.vitals.home) {
            (None, _) => PathBuf::from(root),
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            (Some(_), Some(_)) => {
                return Err(refused(root.to_owned(), "only `~/` is understood".to_owned()));
            }
            (Some(_), None) => {
                return Err(refused(
                    root.to_owned(),
                    "the home directory there is not known; write the whole path".to_owned(),
                ));
            }
        };
        if self.vitals.home.as_ref() == Some(&root) {
            return Err(refused(
                root.display().to_string(),
                "it is the home directory itself".to_owned(),
            ));
        }
        let place = Placement::new(root, name.as_str())
            .map_err(|error| refused(error.path.clone(), error.why.to_owned()))?;
        if self
            .vitals
            .home
            .as_ref()
            .is_some_and(|home| home.starts_with(place.path()))
        {
            return Err(refused(
                place.path().display().to_string(),
                "the home directory lies there".to_owned(),
            ));
        }
        Ok(place)
    }
}
