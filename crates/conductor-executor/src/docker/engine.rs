//! Decides whether a container engine is recent enough to hold hostile code (S-45).
//!
//! The minima are maintained by hand: raise them when an escape is mended. A distribution mends without raising the
//! upstream number, so Debian's own builds have a minimum of their own. This module does not know what is run.

use serde_json::Value;

use super::Unusable;
use super::cli::{Cli, Failed};

/// The oldest Docker engine that will do; Debian 12 maintains it.
pub const OLDEST_ENGINE: Version = Version(20, 10, 24);
/// The oldest upstream runc that will do: 1.1.12 mended CVE-2024-21626.
pub const OLDEST_RUNC: Version = Version(1, 1, 12);
/// The oldest runc of Debian, which has that mended since its 1.1.5+ds1-1+deb12u1.
const OLDEST_RUNC_OF_DEBIAN: Version = Version(1, 1, 5);
/// The oldest Podman that will do: 4.9.4 mended CVE-2024-1753.
const OLDEST_PODMAN: Version = Version(4, 9, 4);

/// Whether an operator accepts an engine that is too old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MayBeOld {
    /// It is refused.
    #[default]
    No,
    /// The operator said so.
    OperatorSaysSo,
}

/// Three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads the first three numbers of a text.
    fn read(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse().ok());
        Some(Self(next()?, next()?, next().unwrap_or(0)))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// What an engine says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Its version, as it says it.
    pub version: String,
    /// The version of its runc, if it has one.
    pub runc: Option<String>,
    is_podman: bool,
}

impl Engine {
    pub(super) async fn ask(cli: &Cli) -> Result<Self, Unusable> {
        let no_engine = |failed: Failed| Unusable::NoEngine {
            program: cli.program(),
            said: failed.to_string(),
        };
        let text = cli
            .call(&["version", "--format", "{{json .}}"])
            .await
            .map_err(no_engine)?;
        let said: Value =
            serde_json::from_str(&text).map_err(|error| no_engine(Failed::Said(error.to_string())))?;
        Self::read(&said)
            .ok_or_else(|| no_engine(Failed::Said(format!("it does not tell its version: {text}"))))
    }

    /// Finds versions in what `version --format json` prints: Docker has a server, Podman without one only a client.
    fn read(said: &Value) -> Option<Self> {
        let server = &said["Server"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let runc = server["Components"]
            .as_array()
            .into_iter()
            .flatten()
            .find_map(|part| {
                let name = part["Name"].as_str()?;
                (name == "runc").then(|| text(&part["Version"]))?
            });
        match text(&server["Version"]) {
            Some(version) => Some(Self {
                version,
                is_podman: server["Components"].is_null(),
                runc,
            }),
            None => text(&said["Client"]["Version"]).map(|version| Self {
                version,
                runc: None,
                is_podman: true,
            }),
        }
    }

    pub(super) fn check(&self, may_be_old: MayBeOld) -> Result<(), Unusable> {
        let (part, oldest) = if self.is_podman {
            ("Podman", OLDEST_PODMAN)
        } else {
            ("the Docker engine", OLDEST_ENGINE)
        };
        is_recent(part, &self.version, oldest, may_be_old)?;
        let Some(runc) = &self.runc else { return Ok(()) };
        let oldest = if runc.contains("+ds") {
            OLDEST_RUNC_OF_DEBIAN
        } else {
            OLDEST_RUNC
        };
        is_recent("runc", runc, oldest, may_be_old)
    }
}

fn is_recent(part: &'static str, found: &str, oldest: Version, may_be_old: MayBeOld) -> Result<(), Unusable> {
    // A version that cannot be read is not known to be recent.
    let is_recent = Version::read(found).is_some_and(|version| version >= oldest);
    if is_recent || may_be_old == MayBeOld::OperatorSaysSo {
        return Ok(());
    }
    Err(Unusable::TooOld {
        part,
        found: found.to_owned(),
        oldest: oldest.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn docker(engine: &str, runc: &str) -> Engine {
        let said = json!({"Client": {"Version": "28.2.2"}, "Server": {
            "Version": engine,
            "Components": [{"Name": "Engine", "Version": engine}, {"Name": "runc", "Version": runc}],
        }});
        Engine::read(&said).expect("an engine")
    }

    /// S-45.
    #[test]
    fn an_engine_or_runc_below_the_minimum_is_refused_unless_the_operator_says_so() {
        for (engine, runc, part) in [
            ("20.10.24+dfsg1", "1.1.5+ds1", None),
            ("28.2.2", "1.2.5", None),
            ("28.2.2", "v1.1.12", None),
            ("19.03.15", "1.2.5", Some("the Docker engine")),
            ("20.10.23", "1.2.5", Some("the Docker engine")),
            ("28.2.2", "1.1.11", Some("runc")),
            ("28.2.2", "1.1.4+ds1", Some("runc")),
            ("28.2.2", "unknown", Some("runc")),
            ("", "1.2.5", Some("the Docker engine")),
        ] {
            let engine = docker(engine, runc);
            let refused = match engine.check(MayBeOld::No) {
                Err(Unusable::TooOld { part, .. }) => Some(part),
                Err(Unusable::NoEngine { .. } | Unusable::Disk { .. }) | Ok(()) => None,
            };
            assert_eq!(refused, part, "{engine:?}");
            assert!(engine.check(MayBeOld::OperatorSaysSo).is_ok());
        }
        let podman =
            |version: &str| Engine::read(&json!({"Client": {"Version": version}})).expect("an engine");
        assert!(podman("4.9.4").check(MayBeOld::No).is_ok());
        assert!(podman("4.3.1").check(MayBeOld::No).is_err());
        assert_eq!(Engine::read(&json!({"Client": null})), None);
    }
}
