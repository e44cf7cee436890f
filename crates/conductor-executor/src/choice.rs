//! Decides whether a named executor may be used; naming none is an error that lists the choices (EXEC-1).
//!
//! This module does not know where the name was written.

use conductor_domain::spec::ExecutorName;

use crate::plain::Consent;

/// Every executor, in the order in which they are offered.
pub const CHOICES: [ExecutorName; 3] = [
    ExecutorName::Local,
    ExecutorName::Docker,
    ExecutorName::UnsafePlain,
];

/// Why an executor is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nobody named one.
    #[error("no executor was named; choose one of: {}", listed())]
    Unnamed,
    /// There is none of that name.
    #[error("there is no executor `{name}`; choose one of: {}", listed())]
    Unknown {
        /// The name.
        name: String,
    },
    /// It runs commands without a sandbox, and this is neither the demo nor a test.
    #[error(
        "executor `unsafe-plain` runs an agent's commands as you, without a sandbox; it is for the demo and tests \
         only (choices: {})",
        listed()
    )]
    Unsafe,
}

/// Finds the executor of this name; one without a sandbox is refused unless there is consent.
pub fn choose(name: Option<&str>, consent: Option<&Consent>) -> Result<ExecutorName, Refused> {
    let name = name.ok_or(Refused::Unnamed)?;
    let chosen = CHOICES
        .into_iter()
        .find(|choice| choice.as_str() == name)
        .ok_or_else(|| Refused::Unknown {
            name: name.to_owned(),
        })?;
    match chosen {
        ExecutorName::Local | ExecutorName::Docker => Ok(chosen),
        ExecutorName::UnsafePlain => consent.map(|_| chosen).ok_or(Refused::Unsafe),
    }
}

fn listed() -> String {
    CHOICES
        .map(|choice| format!("`{}`{}", choice.as_str(), remark(choice)))
        .join(", ")
}

fn remark(choice: ExecutorName) -> &'static str {
    match choice {
        ExecutorName::Local | ExecutorName::Docker => "",
        ExecutorName::UnsafePlain => " (demo and tests only)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::Reason;

    /// EXEC-1: no default, and nothing without a sandbox by accident.
    #[test]
    fn an_executor_is_named_or_refused_with_the_choices() {
        let consent = Consent::to_run_commands_without_a_sandbox(Reason::Test);
        let table = [
            (None, Some(&consent), Err(Refused::Unnamed)),
            (
                Some(""),
                Some(&consent),
                Err(Refused::Unknown { name: String::new() }),
            ),
            (
                Some("Local"),
                Some(&consent),
                Err(Refused::Unknown { name: "Local".into() }),
            ),
            (Some("local"), None, Ok(ExecutorName::Local)),
            (Some("docker"), None, Ok(ExecutorName::Docker)),
            (Some("unsafe-plain"), None, Err(Refused::Unsafe)),
            (
                Some("unsafe-plain"),
                Some(&consent),
                Ok(ExecutorName::UnsafePlain),
            ),
        ];
        for (name, consent, expected) in table {
            let chosen = choose(name, consent);
            if let Err(refused) = &chosen {
                assert!(
                    refused
                        .to_string()
                        .contains("`local`, `docker`, `unsafe-plain` (demo and tests only)"),
                    "{refused}"
                );
            }
            assert_eq!(chosen, expected, "{name:?}");
        }
    }
}
