//! Chooses the skills of a source that a person named, and where they are to go.
//!
//! This module does not know whether they are installed afterwards.

use std::path::Path;

use conductor_port::target::Mode;
use conductor_port::upstream::Upstream;
use conductor_skill::config::{Programs, Skill, Target};
use conductor_skill::environment::Environment;
use conductor_skill::manifest::Manifest;
use conductor_skill::name::SkillName;
use conductor_skill::source::{self, GitSource, Source, Wanted};
use conductor_skill::{agent, discover};
use semver::VersionReq;

use super::desk::{Desk, environments};
use crate::exit::{Exit, Failure};

/// A source, what of it, and where to.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Choice {
    /// A path (./dir), owner/repo, a git or tree address, or a skill's name in a registry
    source: String,
    /// Only these skills of the source
    #[arg(long = "skill", short = 's', value_name = "NAME")]
    skills: Vec<String>,
    /// All skills of the source
    #[arg(long, conflicts_with = "skills")]
    all: bool,
    /// Lists the skills of the source, and does nothing else
    #[arg(long)]
    pub(super) list: bool,
    /// The branch, tag or commit [default: the default branch]
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// The versions that will do, for a skill of a registry
    #[arg(long, value_name = "RANGE", default_value = "*")]
    version: VersionReq,
    /// The registry, for a skill of a registry
    #[arg(long, value_name = "NAME")]
    registry: Option<String>,
    /// Where to: local, docker:<container>
    #[arg(
        long = "target",
        short = 't',
        value_name = "ENVIRONMENT",
        default_value = "local"
    )]
    targets: Vec<String>,
    /// The agent whose directory of skills is meant
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The directory of skills in the target [default: the agent's]
    #[arg(long, value_name = "DIR")]
    path: Option<String>,
    /// Copies, also where a link would do
    #[arg(long)]
    copy: bool,
    /// Leaves out scripts, executables and binaries
    #[arg(long)]
    no_exec: bool,
    /// Asks nothing; chooses nothing either
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

/// A skill in a source.
#[derive(Debug, serde::Serialize)]
pub(super) struct Offer {
    /// Its name.
    pub(super) name: SkillName,
    /// What it says about itself.
    pub(super) description: String,
    #[serde(skip)]
    source: Source,
}

impl Choice {
    /// Finds what the source offers.
    pub(super) async fn offers(&self, desk: &Desk, upstream: &dyn Upstream) -> Result<Vec<Offer>, Failure> {
        let here =
            std::path::absolute(".").map_err(|error| Failure::because("finding this directory", &error))?;
        let wanted = source::wanted(&self.source, &here, desk.home.as_deref())
            .map_err(|error| unusable(error.to_string()))?;
        match wanted {
            Wanted::Named(name) => Ok(vec![Offer {
                name,
                description: String::new(),
                source: Source::Registry {
                    version: self.version.clone(),
                    registry: self.registry.clone(),
                },
            }]),
            Wanted::Place(Source::Path(path)) => {
                if !path.is_dir() {
                    return Err(unusable(format!("there is no directory {}", path.display())));
                }
                offered(&path, |below| {
                    Source::Path(if below.is_empty() {
                        path.clone()
                    } else {
                        path.join(below)
                    })
                })
            }
            Wanted::Place(Source::Git(git)) => self.in_repository(git, upstream).await,
            Wanted::Place(Source::Registry { .. }) => Err(unusable("a registry is no place".to_owned())),
        }
    }

    async fn in_repository(
        &self,
        mut git: GitSource,
        upstream: &dyn Upstream,
    ) -> Result<Vec<Offer>, Failure> {
        if let Some(reference) = &self.reference {
            git.reference = Some(reference.clone());
        }
        let scratch =
            tempfile::tempdir().map_err(|error| Failure::because("making a temporary directory", &error))?;
        let failed = |fault: conductor_domain::fault::Fault| {
            Failure::coded(
                "CDR0705",
                fault.to_string(),
                "check the address, the ref and the network",
            )
        };
        let commit = upstream
            .resolve(&git.url, git.reference.as_deref())
            .await
            .map_err(failed)?;
        upstream
            .export(&git.url, &commit, scratch.path())
            .await
            .map_err(failed)?;
        let top = scratch.path().join(&git.subpath);
        offered(&top, |below| {
            let parts: Vec<&str> = [git.subpath.as_str(), below]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            Source::Git(GitSource {
                subpath: parts.join("/"),
                ..git.clone()
            })
        })
    }

    /// Chooses among the offers; `--yes` never widens the choice.
    pub(super) fn choose(&self, offers: Vec<Offer>, can_ask: bool) -> Result<Vec<Skill>, Failure> {
        let names: Vec<String> = offers.iter().map(|offer| offer.name.to_string()).collect();
        let list = names.join(", ");
        for wanted in &self.skills {
            if !names.contains(wanted) {
                return Err(Failure::coded(
                    "CDR0705",
                    format!("{} holds no skill `{wanted}`; there are {list}", self.source),
                    "choose among these; --list shows what each is for",
                )
                .exiting(Exit::Usage));
            }
        }
        if offers.len() > 1 && self.skills.is_empty() && !self.all && can_ask {
            return Err(Failure::coded(
                "CDR0705",
                format!("{} holds several skills: {list}", self.source),
                "choose with --skill NAME, or take --all",
            )
            .exiting(Exit::Usage));
        }
        let targets = self.targets()?;
        let chosen = offers.into_iter().filter(|offer| {
            self.skills.is_empty() || self.skills.iter().any(|wanted| wanted == offer.name.as_str())
        });
        Ok(chosen
            .map(|offer| Skill {
                name: offer.name,
                source: offer.source,
                mode: if self.copy { Mode::Copy } else { Mode::Symlink },
                programs: if self.no_exec {
                    Programs::LeftOut
                } else {
                    Programs::Installed
                },
                targets: targets.clone(),
            })
            .collect())
    }

    /// The environments that were named.
    pub(super) fn environments(&self) -> Result<Vec<Environment>, Failure> {
        environments(&self.targets)
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let root = match (&self.path, &self.agent) {
            (Some(path), _) => path.clone(),
            (None, agent) => {
                let agent = agent.as_deref().unwrap_or(agent::DEFAULT);
                let known = agent::names().collect::<Vec<_>>().join(", ");
                agent::directory(agent)
                    .ok_or_else(|| {
                        Failure::coded(
                            "CDR0711",
                            format!("agent `{agent}` is not known; there are {known}"),
                            "name its directory of skills with --path",
                        )
                        .exiting(Exit::Usage)
                    })?
                    .to_owned()
            }
        };
        let mut targets = Vec::new();
        for environment in self.environments()? {
            let root = match environment {
                Environment::Local if !root.starts_with('~') => std::path::absolute(Path::new(&root))
                    .map_err(|error| Failure::because(format!("finding {root}"), &error))?
                    .display()
                    .to_string(),
                Environment::Local | Environment::Docker(_) => root.clone(),
            };
            let target = Target { environment, root };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(targets)
    }
}

fn offered(top: &Path, source: impl Fn(&str) -> Source) -> Result<Vec<Offer>, Failure> {
    let mut offers: Vec<Offer> = Vec::new();
    for below in discover::skills(top) {
        let manifest = Manifest::read(&top.join(&below)).map_err(|error| invalid(error.to_string()))?;
        let name = SkillName::parse(&manifest.name).map_err(|error| invalid(error.to_string()))?;
        // The same name deeper in the tree is an example or a test of the first.
        if !offers.iter().any(|offer| offer.name == name) {
            offers.push(Offer {
                name,
                description: manifest.description,
                source: source(&below),
            });
        }
    }
    if offers.is_empty() {
        return Err(unusable(format!("{} holds no skill", top.display())));
    }
    Ok(offers)
}

fn unusable(what: String) -> Failure {
    Failure::coded("CDR0705", what, "docs/skills.md lists the forms of a source").exiting(Exit::Usage)
}

fn invalid(what: String) -> Failure {
    Failure::coded("CDR0706", what, "mend the skill at its source")
}
