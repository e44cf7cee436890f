//! Where a target lies: `local`, `docker:<container>`, and `ssh:<host>`, which is kept for later (SKILL-2).
//!
//! The word in the file decides alone; nothing is looked for on the machine. This module does not know how to get there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An environment that skills can be put into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Environment {
    /// This machine.
    Local,
    /// A running container.
    Docker(ContainerName),
}

/// The name or id of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(String);

/// Why a text names no environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// It is kept for later.
    #[error("`ssh:{host}` is reserved: skills cannot be put on other machines yet")]
    Reserved {
        /// The host.
        host: String,
    },
    /// It is no name of a container.
    #[error(
        "`{0}` is no name of a container (letters, digits, `_`, `.` and `-`, beginning with a letter or digit)"
    )]
    NoContainer(String),
    /// It is nothing that we know.
    #[error("`{0}` is no environment; there are `local` and `docker:<container>`")]
    Nothing(String),
}

impl ContainerName {
    /// Checks a name by Docker's own rule, so that it can never be read as an option or a path.
    pub fn parse(text: &str) -> Result<Self, Unknown> {
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.len() <= 255
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if is_name {
            Ok(Self(text.to_owned()))
        } else {
            Err(Unknown::NoContainer(text.to_owned()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Environment {
    /// Reads the word of a configuration.
    pub fn parse(text: &str) -> Result<Self, Unknown> {
        match text.split_once(':') {
            None if text == "local" => Ok(Self::Local),
            Some(("docker", name)) => ContainerName::parse(name).map(Self::Docker),
            Some(("ssh", host)) => Err(Unknown::Reserved {
                host: host.to_owned(),
            }),
            Some(_) | None => Err(Unknown::Nothing(text.to_owned())),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Docker(name) => write!(f, "docker:{}", name.0),
        }
    }
}

impl TryFrom<String> for Environment {
    type Error = Unknown;
    fn try_from(text: String) -> Result<Self, Unknown> {
        Self::parse(&text)
    }
}

impl From<Environment> for String {
    fn from(environment: Environment) -> Self {
        environment.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKILL-2: the word decides, and nothing that Docker could read as something else passes.
    #[test]
    fn an_environment_is_exactly_one_of_the_known_words() {
        assert_eq!(Environment::parse("local"), Ok(Environment::Local));
        let docker = Environment::parse("docker:my-agent_1.2").expect("a container");
        assert_eq!(docker.to_string(), "docker:my-agent_1.2");
        assert_eq!(
            Environment::parse("ssh:host"),
            Err(Unknown::Reserved { host: "host".into() })
        );
        for bad in [
            "docker:",
            "docker:-v",
            "docker:a b",
            "docker:a:b",
            "docker:../x",
            "docker:$(id)",
            "docker:a\n",
        ] {
            assert!(
                matches!(Environment::parse(bad), Err(Unknown::NoContainer(_))),
                "{bad:?}"
            );
        }
        for bad in ["", "Local", "local ", "podman:x", "docker", "/var/run"] {
            assert!(
                matches!(Environment::parse(bad), Err(Unknown::Nothing(_))),
                "{bad:?}"
            );
        }
    }
}
