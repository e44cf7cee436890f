//! What is played: a repository, an issue, a test command, and what the agents do.
//!
//! The built-in story comes with the agents; any other comes from files. This module does not know how it ends.

use std::path::{Path, PathBuf};

use conductor_agent::stories;

use crate::command::demo::DemoArgs;
use crate::command::repo::words;
use crate::exit::{Exit, Failure};
use crate::settings::read_scenario;

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
        let played = read_scenario(scenario)?;
        let directory = std::fs::canonicalize(repo).map_err(|error| {
            unplayable(
                format!("finding the repository {}: {error}", repo.display()),
                "give --repo a directory that is there",
            )
        })?;
        if !directory.is_dir() {
            return Err(unplayable(
                format!("the repository {} is no directory", directory.display()),
                "give --repo the directory of a git repository",
            ));
        }
        let name = directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let test = args.test.as_deref().ok_or_else(|| {
            unplayable(
                format!(
                    "playing on {} needs the command that decides whether work is right",
                    directory.display()
                ),
                "give --test 'COMMAND'; `--test true` lets everything pass",
            )
        })?;
        has_branch(&directory)?;
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

fn unplayable(what: String, hint: &str) -> Failure {
    Failure::coded("CDR0418", what, hint).exiting(Exit::Usage)
}

/// Refuses a repository whose HEAD is a commit and no branch: nothing says which branch a pull request should go to.
fn has_branch(directory: &Path) -> Result<(), Failure> {
    let dot_git = directory.join(".git");
    let git_dir = match std::fs::read_to_string(&dot_git) {
        // A linked working directory or a submodule: the file says where the rest is.
        Ok(text) => directory.join(text.trim().trim_start_matches("gitdir:").trim()),
        Err(_) if dot_git.is_dir() => dot_git,
        Err(_) => directory.to_owned(),
    };
    // A directory without one is no repository; its files are what is imported.
    match std::fs::read_to_string(git_dir.join("HEAD")) {
        Ok(head) if !head.starts_with("ref:") => Err(unplayable(
            format!("{} is on no branch (its HEAD is detached)", directory.display()),
            "check the branch out that the pull request should go to, for example with `git switch main`",
        )),
        Ok(_) | Err(_) => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn args(repo: &Path, test: Option<&str>) -> DemoArgs {
        let scenario = repo.join("scenario.toml");
        let played = stories::find("rust").expect("a built-in story").scenario;
        std::fs::write(&scenario, played).expect("written");
        DemoArgs {
            executor: None,
            image: None,
            database_url: None,
            yes: true,
            keep: false,
            story: None,
            scenario: Some(scenario),
            repo: Some(repo.to_owned()),
            test: test.map(str::to_owned),
            title: None,
            body: None,
        }
    }

    #[test]
    fn a_repository_without_a_test_command_or_a_branch_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let git = dir.path().join(".git");
        std::fs::create_dir(&git).expect("made");
        let choose = |head: &str, test: Option<&str>| {
            std::fs::write(git.join("HEAD"), head).expect("written");
            Story::choose(&args(dir.path(), test))
        };
        let on_main = "ref: refs/heads/main\n";
        let file = dir.path().join("a");
        std::fs::write(&file, "").expect("written");
        let given = DemoArgs {
            repo: Some(file),
            ..args(dir.path(), Some("true"))
        };
        let failure = Story::choose(&given).expect_err("a file");
        assert!(failure.what.ends_with("is no directory"), "{}", failure.what);
        let detached = format!("{}\n", "a".repeat(40));
        let story = choose(on_main, Some("make check")).expect("playable");
        assert_eq!(story.test_command, ["make", "check"]);
        for (head, test, said) in [
            (on_main, None, "needs the command"),
            (detached.as_str(), Some("make check"), "HEAD is detached"),
        ] {
            let failure = choose(head, test).expect_err(said);
            assert_eq!(
                (failure.exit, failure.code.as_deref()),
                (Exit::Usage, Some("CDR0418"))
            );
            assert!(failure.what.contains(said), "{}", failure.what);
        }
    }

    #[test]
    fn a_linked_working_directory_is_asked_for_its_own_branch() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (linked, git) = (dir.path().join("linked"), dir.path().join("git"));
        std::fs::create_dir(&linked).expect("made");
        std::fs::create_dir(&git).expect("made");
        std::fs::write(linked.join(".git"), "gitdir: ../git\n").expect("written");
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        has_branch(&linked).expect("on a branch");
        std::fs::write(git.join("HEAD"), "a".repeat(40)).expect("written");
        has_branch(&linked).expect_err("on none");
    }
}
