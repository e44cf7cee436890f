//! What is played: a repository, an issue, a test command, and what the agents do.
//!
//! The built-in story comes with the agents; any other comes from files. This module does not know how it ends.

use std::path::PathBuf;

use conductor_agent::stories;

use crate::command::demo::DemoArgs;
use crate::command::repo::words;
use crate::exit::{Exit, Failure};
use crate::settings::check_scenario;

/// What is played.
#[derive(Debug)]
pub(crate) struct Story {
    /// One line about it.
    pub(crate) about: String,
    /// The repository's name at the forge.
    pub(crate) name: String,
    /// What the repository holds.
    pub(crate) content: Content,
    /// The issue's title.
    pub(crate) title: String,
    /// The issue's text.
    pub(crate) body: String,
    /// The argv that decides whether work is right.
    pub(crate) test_command: Vec<String>,
    /// What the agents do.
    pub(crate) scenario: String,
}

/// What a repository holds.
#[derive(Debug)]
pub(crate) enum Content {
    /// The files of a story that this program carries.
    BuiltIn(&'static [stories::File]),
    /// A copy of a directory.
    Directory(PathBuf),
}

impl Story {
    /// Chooses the built-in story, or the one that the arguments name.
    pub(crate) fn choose(args: &DemoArgs) -> Result<Self, Failure> {
        let (Some(scenario), Some(repo)) = (&args.scenario, &args.repo) else {
            let name = args.story.as_deref().unwrap_or("rust");
            let story = stories::find(name).ok_or_else(|| {
                let names: Vec<&str> = stories::all().iter().map(|story| story.name).collect();
                let hint = format!("there are: {}", names.join(", "));
                Failure::coded("CDR0408", format!("there is no story `{name}`"), hint).exiting(Exit::Usage)
            })?;
            return Ok(Self::built_in(story));
        };
        let played = std::fs::read_to_string(scenario).map_err(|error| {
            Failure::because(format!("reading the scenario {}", scenario.display()), &error)
        })?;
        check_scenario(&played, scenario)?;
        let directory = std::fs::canonicalize(repo).map_err(|error| {
            Failure::because(format!("finding the repository {}", repo.display()), &error)
        })?;
        let name = directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let test = args.test.as_deref().unwrap_or("true");
        Ok(Self {
            about: format!("{} on a copy of {}", scenario.display(), directory.display()),
            name: plain(&name),
            content: Content::Directory(directory),
            title: args
                .title
                .clone()
                .unwrap_or_else(|| "Play the scenario".to_owned()),
            body: args
                .body
                .clone()
                .unwrap_or_else(|| "What is to be done stands in the scenario.".to_owned()),
            test_command: words(test)?,
            scenario: played,
        })
    }

    fn built_in(story: stories::Story) -> Self {
        Self {
            about: story.settings.title,
            name: plain(story.name),
            content: Content::BuiltIn(story.files),
            title: story.issue_title,
            body: story.issue_body,
            test_command: story.settings.test_command,
            scenario: story.scenario.to_owned(),
        }
    }
}

/// A name that the forge takes.
fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() {
        "repo".to_owned()
    } else {
        plain.to_owned()
    }
}
