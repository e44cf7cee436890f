//! A file of expected decisions, one a line: `implementer bash worktree:src/a.rs -> allow implementer-runs-commands`.
//!
//! Actors are a role, `conductor`, `operator:<level>` or `person:<login>:<standing>`; targets `worktree[:path]`,
//! `command:<text>`, `own-issue`, `other-issue` and so on, `outcome`, `human`, `repository:<name>[:<class>:<confidence>]`,
//! `dependency:<repository>:<ecosystem>:<name>:<version>`. Only a command and a dependency may hold blanks, and neither can
//! hold a `#` here. The policy's id may be left out. This module does not know where the file comes from.

use conductor_domain::diff::ChangeClass;
use conductor_domain::role::Role;

use super::{Action, Actor, Authority, Change, Level, Request, Ruling, Standing, Target};
use crate::inspect::path::plain;

/// How an expectation is written.
const FORM: &str = "actor action target -> decision [policy]";

const RULINGS: [Ruling; 3] = [Ruling::Allow, Ruling::RequireApproval, Ruling::Deny];

const CLASSES: [ChangeClass; 4] = [
    ChangeClass::Documentation,
    ChangeClass::Tests,
    ChangeClass::Dependencies,
    ChangeClass::Code,
];

/// A line that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Mismatch {
    /// The line, from 1.
    pub line: usize,
    /// What was expected and what is.
    pub message: String,
}

/// Checks every line; returns how many held, and what did not. A file that expects nothing does not hold.
pub fn expect_all(authority: &Authority, text: &str) -> (usize, Vec<Mismatch>) {
    let mut held = 0;
    let mut mismatches = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        match expect(authority, line) {
            Ok(()) => held += 1,
            Err(message) => mismatches.push(Mismatch {
                line: index + 1,
                message,
            }),
        }
    }
    if held == 0 && mismatches.is_empty() {
        let message = format!("nothing is expected; write `{FORM}`");
        mismatches.push(Mismatch { line: 1, message });
    }
    (held, mismatches)
}

fn expect(authority: &Authority, line: &str) -> Result<(), String> {
    let (question, answer) = line
        .rsplit_once("->")
        .ok_or_else(|| format!("expected `{FORM}`"))?;
    let request = read_question(question)?;
    let expected: Vec<&str> = answer.split_whitespace().collect();
    let ([decision] | [decision, _]) = expected.as_slice() else {
        return Err(format!("expected `{FORM}`"));
    };
    if !RULINGS.iter().any(|known| known.to_string() == *decision) {
        return Err(format!(
            "`{decision}` is no decision; there are {}",
            RULINGS.map(|known| known.to_string()).join(", ")
        ));
    }
    let verdict = authority.judge(&request);
    let found = [verdict.ruling.to_string(), verdict.policy.clone()];
    let holds = expected.iter().zip(&found).all(|(a, b)| a == b);
    holds.then_some(()).ok_or_else(|| {
        format!(
            "expected {}, but it is {} by {} ({})",
            expected.join(" by "),
            verdict.ruling,
            verdict.policy,
            verdict.reason
        )
    })
}

/// Reads a question: `actor action target`.
pub fn read_question(question: &str) -> Result<Request, String> {
    let mut words = question.trim().splitn(2, char::is_whitespace);
    let actor = words.next().unwrap_or_default();
    let mut words = words
        .next()
        .unwrap_or_default()
        .trim_start()
        .splitn(2, char::is_whitespace);
    let action = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default().trim_start();
    let has_blanks = target.contains(char::is_whitespace);
    let may_have_them = target.starts_with("command:") || target.starts_with("dependency:");
    if target.is_empty() || (has_blanks && !may_have_them) {
        return Err(format!(
            "expected three words: actor, action, target; these are {}",
            question.split_whitespace().count()
        ));
    }
    let no_actor = || {
        format!(
            "`{actor}` is no actor; write planner, implementer, reviewer, tester, conductor, operator:LEVEL or \
             person:LOGIN:STANDING"
        )
    };
    let no_action = || {
        let known: Vec<&str> = Action::all().map(Action::name).collect();
        format!("`{action}` is no action; there are {}", known.join(", "))
    };
    let no_target = || {
        format!(
            "`{target}` is no target; write worktree[:PATH], command:TEXT, own-issue, other-issue, own-pull-request, \
             other-pull-request, own-check-run, own-project-fields, outcome, human, \
             repository:NAME[:CLASS:CONFIDENCE] or dependency:REPOSITORY:ECOSYSTEM:NAME:VERSION; a CLASS is {}, a \
             CONFIDENCE 0 to 100",
            CLASSES.map(ChangeClass::as_str).join(", ")
        )
    };
    let request = Request::new(
        read_actor(actor).ok_or_else(no_actor)?,
        Action::named(action).ok_or_else(no_action)?,
        read_target(target).ok_or_else(no_target)?,
    );
    let is_bare = matches!(&request.target, Target::Repository { change: None, .. });
    if request.action == Action::Merge && is_bare {
        return Err("a merge is asked for with what it changes: repository:NAME:CLASS:CONFIDENCE".to_owned());
    }
    Ok(request)
}

fn read_actor(word: &str) -> Option<Actor> {
    let mut parts = word.split(':');
    let first = parts.next()?;
    match first {
        "conductor" => Some(Actor::Orchestrator),
        "operator" => {
            let level = match parts.next()? {
                "viewer" => Level::Viewer,
                "operator" => Level::Operator,
                "admin" => Level::Admin,
                _ => return None,
            };
            Some(Actor::Operator {
                name: "somebody".to_owned(),
                level,
            })
        }
        "person" => {
            let login = parts.next()?.to_owned();
            let standing = match parts.next()? {
                "owner" => Standing::Owner,
                "member" => Standing::Member,
                "collaborator" => Standing::Collaborator,
                "contributor" => Standing::Contributor,
                "none" => Standing::None,
                _ => return None,
            };
            Some(Actor::Person { login, standing })
        }
        role => Role::ALL
            .into_iter()
            .find(|known| known.to_string().eq_ignore_ascii_case(role))
            .map(Actor::Agent),
    }
}

pub(super) fn read_target(word: &str) -> Option<Target> {
    let (first, rest) = word.split_once(':').unwrap_or((word, ""));
    if let Some((whose, kind)) = first.split_once('-') {
        let is_own = match whose {
            "own" => true,
            "other" => false,
            _ => return None,
        };
        return match kind {
            "issue" => Some(Target::Issue { is_own }),
            "pull-request" => Some(Target::PullRequest { is_own }),
            "check-run" => Some(Target::CheckRun { is_own }),
            "project-fields" => Some(Target::ProjectFields { is_own }),
            _ => None,
        };
    }
    match first {
        "worktree" => Some(Target::Worktree { path: plain(rest) }),
        "command" => Some(Target::Command {
            text: rest.to_owned(),
        }),
        "dependency" => {
            let mut parts = rest.splitn(4, ':').map(str::to_owned);
            Some(Target::Dependency {
                repo: parts.next()?,
                ecosystem: parts.next()?,
                name: parts.next()?,
                version: parts.next()?,
            })
        }
        "outcome" => Some(Target::Outcome),
        "human" => Some(Target::Human),
        "repository" => {
            let (name, change) = match rest.split_once(':') {
                None => (rest, None),
                Some((name, change)) => (name, Some(read_change(change)?)),
            };
            let name = name.to_owned();
            Some(Target::Repository { name, change })
        }
        _ => None,
    }
}

/// Reads `class:confidence`.
fn read_change(words: &str) -> Option<Change> {
    let (class, confidence) = words.split_once(':')?;
    let is_known = CLASSES.iter().any(|known| known.as_str() == class);
    let confidence = confidence.parse().ok().filter(|percent| *percent <= 100)?;
    is_known.then(|| Change {
        class: class.to_owned(),
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_for_an_actor_names_another() {
        let operator = |level| Actor::Operator {
            name: "somebody".to_owned(),
            level,
        };
        let person = |standing| Actor::Person {
            login: "ann".to_owned(),
            standing,
        };
        for (word, actor) in [
            ("planner", Actor::Agent(Role::Planner)),
            ("Reviewer", Actor::Agent(Role::Reviewer)),
            ("implementer", Actor::Agent(Role::Implementer)),
            ("tester", Actor::Agent(Role::Tester)),
            ("conductor", Actor::Orchestrator),
            ("operator:viewer", operator(Level::Viewer)),
            ("operator:operator", operator(Level::Operator)),
            ("operator:admin", operator(Level::Admin)),
            ("person:ann:owner", person(Standing::Owner)),
            ("person:ann:member", person(Standing::Member)),
            ("person:ann:collaborator", person(Standing::Collaborator)),
            ("person:ann:contributor", person(Standing::Contributor)),
            ("person:ann:none", person(Standing::None)),
        ] {
            assert_eq!(read_actor(word), Some(actor), "{word}");
        }
        for word in [
            "",
            "plan",
            "operator",
            "operator:root",
            "person:ann",
            "person:ann:bot",
        ] {
            assert_eq!(read_actor(word), None, "{word}");
        }
    }

    #[test]
    fn every_word_for_a_target_names_another() {
        let repository = |change| Target::Repository {
            name: "acme/app".to_owned(),
            change,
        };
        for (word, target) in [
            ("own-issue", Target::Issue { is_own: true }),
            ("other-issue", Target::Issue { is_own: false }),
            ("own-pull-request", Target::PullRequest { is_own: true }),
            ("other-pull-request", Target::PullRequest { is_own: false }),
            ("own-check-run", Target::CheckRun { is_own: true }),
            ("other-check-run", Target::CheckRun { is_own: false }),
            ("own-project-fields", Target::ProjectFields { is_own: true }),
            ("other-project-fields", Target::ProjectFields { is_own: false }),
            ("worktree", Target::Worktree { path: String::new() }),
            (
                "worktree:a/b",
                Target::Worktree {
                    path: "a/b".to_owned(),
                },
            ),
            (
                "command:echo a:b",
                Target::Command {
                    text: "echo a:b".to_owned(),
                },
            ),
            ("outcome", Target::Outcome),
            ("human", Target::Human),
            ("repository:acme/app", repository(None)),
            (
                "repository:acme/app:tests:100",
                repository(Some(Change {
                    class: "tests".to_owned(),
                    confidence: 100,
                })),
            ),
            (
                "dependency:acme/app:npm:@scope/a:npm:b@1",
                Target::Dependency {
                    repo: "acme/app".to_owned(),
                    ecosystem: "npm".to_owned(),
                    name: "@scope/a".to_owned(),
                    version: "npm:b@1".to_owned(),
                },
            ),
        ] {
            assert_eq!(read_target(word), Some(target), "{word}");
        }
        for word in [
            "",
            "issue",
            "their-issue",
            "own-issues",
            "dependency:acme/app:npm:a",
            "repository:acme/app:tests",
            "repository:acme/app:tests:101",
            "repository:acme/app:words:100",
        ] {
            assert_eq!(read_target(word), None, "{word}");
        }
    }
}
