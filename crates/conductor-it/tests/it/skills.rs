//! Skills of a role: locked when a run starts, read-only where the role works, gone with it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::Play;

use crate::PROGRAM;
use crate::kept::{Kept, on_both_databases};

on_both_databases!(a_run_locks_the_skills_of_its_roles_and_uses_exactly_those,);

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
    let file = root.join("skills.toml");
    let text = format!(
        "version = 1\n[[skills]]\nid = \"greeter\"\nsource = {{ path = \"{}/greeter\" }}\n",
        root.display()
    );
    write(&file, &text)?;
    Ok(format!(
        "[skills]\nfile = \"{}\"\nimplementer = [\"{name}\"]\n",
        file.display()
    ))
}

/// SKILL-5, EXEC-4: the run locks what the skill holds when it starts, shows it, and uses that to its end although the skill
/// changes on disk meanwhile; the role can run it and not write it; other roles and the tests do not have it; a later run
/// locks what is there then.
async fn a_run_locks_the_skills_of_its_roles_and_uses_exactly_those(kept: Kept) -> Result<()> {
    let root = tempfile::tempdir()?;
    skill(&root.path().join("greeter"), "hello, world")?;
    let play = Play {
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
    let open = stage.program.data_dir().join("executor/open");
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
#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_cannot_be_used_starts_no_server() -> Result<()> {
    for (name, break_it) in [("../greeter", false), ("unknown", false), ("greeter", true)] {
        let root = tempfile::tempdir()?;
        skill(&root.path().join("greeter"), "hello")?;
        if break_it {
            let text = "---\nname: ../../etc\ndescription: d\n---\n";
            write(&root.path().join("greeter/SKILL.md"), text)?;
        }
        let play = Play {
            settings: settings(root.path(), name)?,
            ..Play::shell(WITH_SKILL)
        };
        let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
        stage.program.start_in_vain()?.refused("CDR0421")?;
    }
    Ok(())
}
