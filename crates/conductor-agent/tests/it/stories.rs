//! The stories are whole: what is embedded is what lies in `stories/`, and every patch does what the story says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use conductor_agent::stories::{self, Story};
use conductor_agent::{Scenario, scenario};
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::invocation::Purpose;
use conductor_port::agent::{AgentEnd, Misfit, ToolAnswer, ToolRequest, Tools};

use crate::kit::{self, agents, done, refused, task};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stories")
}

fn files_in(dir: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // What running a story's tests in place leaves behind is no part of it.
        if matches!(name.as_str(), "target" | "__pycache__") {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            files_in(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_binary_carries_every_file_of_every_story() {
    let names: Vec<&str> = stories::all().iter().map(|story| story.name).collect();
    assert_eq!(names, ["rust", "python", "node"]);
    for story in stories::all() {
        let mut on_disk = BTreeMap::new();
        files_in(&directory().join(story.name).join("repo"), "", &mut on_disk);
        let embedded: BTreeMap<String, String> = story
            .files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()))
            .collect();
        assert_eq!(embedded, on_disk, "{}", story.name);
        assert_eq!(stories::find(story.name), Some(story));
    }
    assert_eq!(stories::find("cobol"), None);
}

#[test]
fn every_scenario_is_understood() {
    let scenarios = stories::all()
        .into_iter()
        .map(|story| (story.name, story.scenario));
    for (name, text) in scenarios.chain([("hostile", stories::HOSTILE_SCENARIO)]) {
        let read: Result<Scenario, scenario::Invalid> = Scenario::parse(text);
        assert_eq!(read.err(), None, "{name}");
    }
}

#[test]
fn every_story_says_what_it_needs() {
    for Story {
        name,
        settings,
        issue_title,
        issue_body,
        ..
    } in stories::all()
    {
        assert_eq!(settings.language, name);
        assert_eq!(settings.base_branch, "main");
        assert_eq!(settings.programs, [settings.test_command[0].as_str()]);
        assert!(
            !issue_title.is_empty() && !issue_title.starts_with('#'),
            "{issue_title}"
        );
        assert!(
            issue_body.len() > 80 && !issue_body.contains(&issue_title),
            "{issue_body}"
        );
    }
}

/// Does as it is told in a directory: the stories are ours, so nothing is checked.
struct TrustingTools<'a> {
    dir: &'a Path,
}

#[async_trait]
impl Tools for TrustingTools<'_> {
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault> {
        Ok(match request {
            ToolRequest::View { path } => match std::fs::read_to_string(self.dir.join(path)) {
                Ok(content) => done(&content),
                Err(error) => refused(&error.to_string()),
            },
            ToolRequest::CreateFile { path, content } => {
                std::fs::write(self.dir.join(path), content).unwrap();
                done("")
            }
            ToolRequest::StrReplace { path, old, new } => {
                let content = std::fs::read_to_string(self.dir.join(&path)).unwrap();
                assert_eq!(content.matches(&old).count(), 1, "{path}: {old}");
                std::fs::write(self.dir.join(path), content.replace(&old, &new)).unwrap();
                done("")
            }
            ToolRequest::Bash { command } => done(&run(self.dir, &["bash", "-c", &command]).1),
            ToolRequest::ListFiles { .. }
            | ToolRequest::SearchFiles { .. }
            | ToolRequest::GitStatus
            | ToolRequest::GitDiff
            | ToolRequest::GitCommit { .. } => refused("no story of ours calls it"),
            ToolRequest::Github(_)
            | ToolRequest::SubmitPlan(_)
            | ToolRequest::SubmitReview(_)
            | ToolRequest::SubmitTestReport(_) => done(""),
            ToolRequest::AskHuman { .. } => ToolAnswer::Stop,
        })
    }

    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault> {
        Ok(refused(&call.reason))
    }

    async fn say(&self, _text: &str) {}
}

#[allow(
    clippy::disallowed_methods,
    reason = "runs the stories' own test commands, as a person would"
)]
fn run(dir: &Path, argv: &[&str]) -> (bool, String) {
    let output = std::process::Command::new(argv[0])
        .args(&argv[1..])
        .current_dir(dir)
        .output();
    let output = output.unwrap_or_else(|error| panic!("the story needs `{}`: {error}", argv[0]));
    let printed = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

/// RUN-8: the base passes, the first patch fails, the second passes; and every agent is told what it insists on.
async fn check(name: &str) {
    let story = stories::find(name).unwrap();
    let base = tempfile::tempdir().unwrap();
    for (path, content) in story.files {
        let path = base.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let command: Vec<&str> = story.settings.test_command.iter().map(String::as_str).collect();
    let (passes, output) = run(base.path(), &command);
    assert!(passes, "the base fails: {output}");

    let (agents, _) = agents();
    let tools = TrustingTools { dir: base.path() };
    let issue = format!("{}\n{}", story.issue_title, story.issue_body);
    // What the agents submit goes on to the next as text; the scenario file holds all of it.
    let said = story.scenario.replace("\\\n", "");
    let mut context = vec![
        (ArtifactKind::Issue, issue.into_bytes()),
        (ArtifactKind::Plan, said.into_bytes()),
    ];
    let invoke = async |purpose, attempt, context: &[(ArtifactKind, Vec<u8>)]| {
        let context: Vec<(ArtifactKind, &[u8])> = context
            .iter()
            .map(|(kind, bytes)| (*kind, bytes.as_slice()))
            .collect();
        let task = task(story.scenario, purpose, attempt, &context);
        let ended = kit::invoke(&agents, task, &tools).await;
        assert!(
            matches!(ended, Ok(AgentEnd::Finished { .. })),
            "{purpose:?} {attempt}: {ended:?}"
        );
    };
    for attempt in [1, 2] {
        invoke(Purpose::Plan, attempt, &context).await;
        invoke(Purpose::ReviewPlan, attempt, &context).await;
    }
    for (attempt, should_pass) in [(1, false), (2, true)] {
        invoke(Purpose::Implement, attempt, &context).await;
        let (passes, output) = run(base.path(), &command);
        assert_eq!(passes, should_pass, "patch {attempt}: {output}");
        context.truncate(2);
        context.push((ArtifactKind::TestOutput, output.into_bytes()));
        invoke(Purpose::InterpretTests, attempt, &context[2..]).await;
    }
    invoke(Purpose::ReviewImplementation, 1, &context).await;
}

#[tokio::test]
async fn the_rust_story_plays() {
    check("rust").await;
}

#[tokio::test]
async fn the_python_story_plays() {
    check("python").await;
}

#[tokio::test]
async fn the_node_story_plays() {
    check("node").await;
}
