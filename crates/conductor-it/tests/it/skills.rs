//! Skills of a role: locked when a run starts, read-only where the role works, gone with it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::{Executor, Play};

use crate::PROGRAM;
use crate::kept::{Kept, on_both_databases};

on_both_databases!(
    a_run_locks_the_skills_of_its_roles_and_uses_exactly_those,
    kept_files_of_a_skill_that_were_tampered_with_start_no_agent,
    a_skill_that_cannot_be_used_starts_no_server,
    a_role_without_commands_reads_its_skills,
    a_run_locks_the_commit_of_a_skill_from_git,
);

const SKILL_READ: &str = include_str!("../../testdata/scenarios/skill_read.toml");
const WITH_SKILL: &str = include_str!("../../testdata/scenarios/with_skill.toml");

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().context("a parent")?)?;
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// A skill on disk, with a program that says the greeting.
fn skill(dir: &Path, greeting: &str) -> Result<()> {
    write(
        &dir.join("SKILL.md"),
        "---\nname: greeter\ndescription: Says a greeting.\n---\nRun bin/greet.\n",
    )?;
    let program = dir.join("bin/greet");
    write(&program, &format!("#!/bin/sh\necho '{greeting}'\n"))?;
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

fn settings(root: &Path, name: &str) -> Result<String> {
    let source = format!("path = \"{}/greeter\"", root.display());
    settings_of(root, &source, &format!("implementer = [\"{name}\"]"))
}

/// Describes the skill by its source, and says which roles have it.
fn settings_of(root: &Path, source: &str, roles: &str) -> Result<String> {
    let file = root.join("skills.toml");
    let text = format!("version = 1\n[[skills]]\nid = \"greeter\"\nsource = {{ {source} }}\n");
    write(&file, &text)?;
    Ok(format!("[skills]\nfile = \"{}\"\n{roles}\n", file.display()))
}

fn git(dir: &Path, arguments: &[&str]) -> Result<String> {
    let ran = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t.test"])
        .args(arguments)
        .current_dir(dir)
        .output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(String::from_utf8(ran.stdout)?.trim().to_owned())
}

/// SKILL-5, EXEC-4: the run locks what the skill holds when it starts, shows it, and uses that to its end although the skill
/// changes on disk meanwhile; the role can run it and not write it; other roles and the tests do not have it; a later run
/// locks what is there then.
async fn a_run_locks_the_skills_of_its_roles_and_uses_exactly_those(kept: Kept) -> Result<()> {
    locked_and_used(kept, Executor::Local, "executor/open").await
}

/// Plays it with the executor, whose open sandboxes have their files there.
pub(crate) async fn locked_and_used(kept: Kept, executor: Executor, open: &str) -> Result<()> {
    let root = tempfile::tempdir()?;
    skill(&root.path().join("greeter"), "hello, world")?;
    let play = Play {
        executor,
        settings: settings(root.path(), "greeter")?,
        test: "sh -c 'test ! -e /skills && sh test.sh'".to_owned(),
        ..kept.shell(WITH_SKILL)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    skill(&root.path().join("greeter"), "tampered")?;
    let locked = stage.show(&run)?["skills"][0].clone();
    ensure!(
        locked["name"] == "greeter"
            && locked["roles"] == serde_json::json!(["implementer"])
            && locked["content"]
                .as_str()
                .is_some_and(|hash| hash.starts_with("sha256:")),
        "{locked:#}"
    );
    let plainly = stage.program.say_plainly(&["run", "show", &run])?.done()?.stdout;
    ensure!(plainly.contains("\nskill         greeter "), "{plainly}");
    stage.approve(&run)?;
    let seen = stage.wait_for_phase(&run, "awaiting_merge")?;
    ensure!(seen["tests"][0]["passed"] == true, "{seen:#}");
    let events = stage
        .program
        .say(&["run", "show", &run, "--events"])?
        .done()?
        .data;
    ensure!(
        events["events"][1]["payload"].to_string().contains("\"greeter\""),
        "{:#}",
        events["events"][1]
    );
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    let open = stage.program.data_dir().join(open);
    ensure!(
        std::fs::read_dir(&open)?.count() == 0,
        "a sandbox's files are left"
    );

    let later = stage.start_run("Greet them again")?;
    let relocked = stage.show(&later)?["skills"][0].clone();
    ensure!(relocked["content"] != locked["content"], "{relocked:#}");
    stage.verify(&run)
}

/// SKILL-5, SEC-2: a name that leads elsewhere, one that nobody knows, and a skill that breaks the rules start no server.
async fn a_skill_that_cannot_be_used_starts_no_server(kept: Kept) -> Result<()> {
    for (name, break_it) in [("../greeter", false), ("unknown", false), ("greeter", true)] {
        let root = tempfile::tempdir()?;
        skill(&root.path().join("greeter"), "hello")?;
        if break_it {
            let text = "---\nname: ../../etc\ndescription: d\n---\n";
            write(&root.path().join("greeter/SKILL.md"), text)?;
        }
        let play = Play {
            settings: settings(root.path(), name)?,
            ..kept.another().await.shell(WITH_SKILL)
        };
        let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
        stage.program.start_in_vain()?.refused("CDR0421")?;
    }
    Ok(())
}

/// SKILL-5, TOOL-1: roles that may run no command are told of their skills and read them with the tools for files, which
/// lead nowhere else.
async fn a_role_without_commands_reads_its_skills(kept: Kept) -> Result<()> {
    let root = tempfile::tempdir()?;
    skill(&root.path().join("greeter"), "hello, world")?;
    let source = format!("path = \"{}/greeter\"", root.path().display());
    let roles = "planner = [\"greeter\"]\nreviewer = [\"greeter\"]";
    let play = Play {
        settings: settings_of(root.path(), &source, roles)?,
        ..kept.shell(SKILL_READ)
    };
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.verify(&run)?;
    stage.program.stop()
}

/// SKILL-5: a skill from a repository is locked with its commit; what is committed later concerns later runs.
async fn a_run_locks_the_commit_of_a_skill_from_git(kept: Kept) -> Result<()> {
    let root = tempfile::tempdir()?;
    let upstream = root.path().join("owner/upstream");
    skill(&upstream.join("skills/greeter"), "hello, world")?;
    git(&upstream, &["init", "--quiet", "--initial-branch=main"])?;
    git(&upstream, &["add", "--all"])?;
    git(&upstream, &["commit", "--quiet", "--message", "one"])?;
    let commit = git(&upstream, &["rev-parse", "HEAD"])?;
    let source = format!(
        "repo = \"file://{}\", subpath = \"skills/greeter\", ref = \"main\"",
        upstream.display()
    );
    let play = Play {
        settings: settings_of(root.path(), &source, "implementer = [\"greeter\"]")?,
        ..kept.shell(WITH_SKILL)
    };
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    skill(&upstream.join("skills/greeter"), "tampered")?;
    git(&upstream, &["commit", "--quiet", "--all", "--message", "two"])?;
    let locked = stage.show(&run)?["skills"][0].clone();
    ensure!(locked["commit"] == commit.as_str(), "{locked:#}");
    stage.approve(&run)?;
    let seen = stage.wait_for_phase(&run, "awaiting_merge")?;
    ensure!(seen["tests"][0]["passed"] == true, "{seen:#}");
    stage.verify(&run)?;
    stage.program.stop()
}

/// SKILL-5, SEC-8: kept bytes of a locked skill that somebody changed in the database reach no sandbox: no agent starts,
/// and the run stands and says why.
async fn kept_files_of_a_skill_that_were_tampered_with_start_no_agent(kept: Kept) -> Result<()> {
    let root = tempfile::tempdir()?;
    skill(&root.path().join("greeter"), "hello, world")?;
    let play = Play {
        settings: settings(root.path(), "greeter")?,
        ..kept.shell(WITH_SKILL)
    };
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let tamper = kept.either(
        "UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'hello, world', 'hello, thief') AS BLOB) \
         WHERE kind = 'skill'",
        "UPDATE blobs SET bytes = convert_to(replace(convert_from(bytes, 'UTF8'), 'hello, world', 'hello, thief'), 'UTF8') \
         WHERE kind = 'skill'",
    );
    kept.change(stage.program.data_dir(), tamper).await?;
    stage.approve(&run)?;
    let seen = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    let holds = seen["holds"].to_string();
    ensure!(
        seen["run"]["phase"] == "executing" && holds.contains("sha256:") && !holds.contains("thief"),
        "{seen:#}"
    );
    let calls = kept
        .column(
            stage.program.data_dir(),
            &format!(
                "SELECT kind FROM records WHERE stream = 'run/{run}' AND kind = 'implementation_finished'"
            ),
        )
        .await?;
    ensure!(calls.is_empty(), "an agent worked: {calls:?}");
    stage.program.stop()
}
