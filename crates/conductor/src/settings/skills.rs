//! Which role has which skills, as settings (SKILL-5).
//!
//! This module does not know what a skill is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use conductor_domain::role::Role;
use serde::Deserialize;

use crate::data_dir::DataDir;
use crate::wire::RoleSkills;

/// Which role has which skills (SKILL-5); none unless it is written down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldSkills {
    file: Option<PathBuf>,
    #[serde(default)]
    planner: Vec<String>,
    #[serde(default)]
    implementer: Vec<String>,
    #[serde(default)]
    reviewer: Vec<String>,
    #[serde(default)]
    tester: Vec<String>,
}

impl ToldSkills {
    /// The names by role, and the file that describes the skills.
    pub(crate) fn by_role(&self, data_dir: &DataDir) -> RoleSkills {
        let usual = || data_dir.path().join("skills/skills.toml");
        RoleSkills {
            file: self.file.clone().unwrap_or_else(usual),
            wanted: BTreeMap::from([
                (Role::Planner, self.planner.clone()),
                (Role::Implementer, self.implementer.clone()),
                (Role::Reviewer, self.reviewer.clone()),
                (Role::Tester, self.tester.clone()),
            ]),
        }
    }
}
