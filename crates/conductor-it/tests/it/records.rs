//! The records are locked, full, damaged, tampered with or from the future: each is named, and nothing is lost.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use conductor_it::stage::{Executor, Play};
use conductor_it::{Program, Stage};

use crate::kept::{Kept, column_of_file, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    a_database_of_a_newer_version_is_left_alone,
    a_database_that_another_process_holds_is_waited_for_and_named,
    a_damaged_record_is_named_and_stops_nothing_else,
    tampering_is_named,
);

/// A database from a newer version is left alone by everything, and works again when it is as it was.
async fn a_database_of_a_newer_version_is_left_alone(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Wait for me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.program.stop()?;
    let data_dir = stage.program.data_dir().to_owned();
    kept.change(
        &data_dir,
        "INSERT INTO schema_migrations (version, name, checksum) SELECT 999, 'future', checksum FROM schema_migrations LIMIT 1",
    )
    .await?;
    let before = kept.everything(&data_dir).await?;
    let said = stage.program.start_in_vain()?.refused("CDR0602")?;
    ensure!(said.code == 1, "{said:?}");
    for command in [
        &["run", "list"][..],
        &["run", "show", &run],
        &["audit", "verify"],
        &["projections", "rebuild"],
    ] {
        let said = stage.program.say(command)?.refused("CDR0602")?;
        ensure!(said.code == 1 && said.stdout.is_empty(), "{command:?}: {said:?}");
    }
    ensure!(
        kept.everything(&data_dir).await? == before,
        "it was changed all the same"
    );
    kept.change(&data_dir, "DELETE FROM schema_migrations WHERE version = 999")
        .await?;
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// Another process holds the database: what is asked is refused by name, and goes on when it lets go.
async fn a_database_that_another_process_holds_is_waited_for_and_named(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Wait for me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let data_dir = stage.program.data_dir().to_owned();
    let writing = kept.either(
        "PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE",
        "BEGIN; LOCK TABLE records IN EXCLUSIVE MODE",
    );
    let holder = kept.hold(&data_dir, writing).await?;
    let said = stage.program.say(&["run", "pause", &run])?.refused("CDR0607")?;
    ensure!(
        said.code == 1 && said.stderr.contains("another program holds the database"),
        "{said:?}"
    );
    ensure!(trouble(&stage)?.contains("CDR0607"), "{}", trouble(&stage)?);
    ensure!(
        stage.show(&run)?["run"]["held"] == false,
        "reading goes on, and nothing was changed"
    );
    holder.let_go().await?;
    stage.program.say(&["run", "pause", &run])?.done()?;
    ensure!(trouble(&stage)?.is_empty(), "{}", trouble(&stage)?);
    stage.program.say(&["run", "resume", &run])?.done()?;
    stage.program.stop()?;

    let all = kept.either(
        "PRAGMA busy_timeout = 60000; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; \
         UPDATE runs SET title = title WHERE 0; COMMIT",
        "BEGIN; LOCK TABLE schema_migrations, runs IN ACCESS EXCLUSIVE MODE",
    );
    let holder = kept.hold(&data_dir, all).await?;
    let said = stage.program.start_in_vain()?.refused("CDR0607")?;
    ensure!(said.code == 1, "{said:?}");
    stage.program.say(&["run", "list"])?.refused("CDR0607")?;
    holder.let_go().await?;
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// RUN-3, SEC-8: a record that cannot be read is named, hides no other run, and does not stop its own; a projection that
/// cannot be read is made anew from the log.
async fn a_damaged_record_is_named_and_stops_nothing_else(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let run = stage.start_run("Damage me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.program.stop()?;
    let data_dir = stage.program.data_dir().to_owned();
    let good = tempfile::tempdir()?;
    kept.copy(&data_dir, good.path()).await?;

    let harm = format!("UPDATE runs SET state = '{{' WHERE run = '{run}'");
    kept.change(&data_dir, &harm).await?;
    let said = stage.program.say(&["run", "show", &run])?.refused("CDR0621")?;
    ensure!(said.stderr.contains("projections rebuild"), "{said:?}");
    stage.program.say(&["projections", "rebuild"])?.done()?;
    stage.program.say(&["run", "show", &run])?.done()?;

    let harm = format!("UPDATE records SET payload = '{{ \"no' WHERE stream = 'run/{run}' AND seq = 7");
    kept.change(&data_dir, &harm).await?;
    let named = format!("run/{run}");
    let damaged = |program: &Program| -> Result<()> {
        for command in [&["audit", "verify"][..], &["run", "replay", &run]] {
            let said = program.say_plainly(command)?;
            let all = format!("{}{}", said.stdout, said.stderr);
            ensure!(
                said.code == 1 && all.contains(&run) && all.contains('7') && all.contains("hint: "),
                "{command:?}: {said:?}"
            );
        }
        Ok(())
    };
    damaged(&stage.program).with_context(|| format!("{named}, without a server"))?;
    let said = stage
        .program
        .say(&["projections", "rebuild"])?
        .refused("CDR0621")?;
    ensure!(said.data["damaged"] == serde_json::json!([run]), "{said:?}");
    ensure!(said.stderr.contains(&run), "{said:?}");
    stage.program.start(None)?;
    damaged(&stage.program).with_context(|| format!("{named}, with a server"))?;
    let other = stage.start_run("Leave me alone")?;
    stage.wait_for_phase(&other, "awaiting_plan_approval")?;
    stage.program.say(&["run", "replay", &other])?.done()?;
    stage.carry_through(&run).await?;
    stage.program.stop()?;

    // What was damaged can be brought back from a copy, and is what it was.
    let back = Program::new(PROGRAM, good.path(), vec![]);
    back.say(&["audit", "verify"])?.done()?;
    back.say(&["run", "replay", &run])?.done()?;
    ensure!(!stage.program.log().contains("panicked"), "{}", stage.log());
    Ok(())
}

/// A full disk, in the middle of a run: what is asked is refused by name, what was kept stays, and with room it goes on.
///
/// Room is only measured out while nothing else takes or gives any: before the disk is filled, the server has nothing to
/// do; what is asserted after that does not depend on who gets the room that is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_loses_nothing() -> Result<()> {
    if !is_inside() {
        return again_with_own_mounts();
    }
    let play = Play {
        executor: Executor::UnsafePlain,
        ..Play::shell(GREETING)
    };
    let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
    let data_dir = stage.program.data_dir().to_owned();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"])
        .arg(&data_dir)
        .status()?;
    ensure!(mounted.success(), "mounting a small disk ended with {mounted}");
    stage.program.start(None)?;
    stage.register(&play)?;
    let issue = stage
        .person
        .open_issue(conductor_it::stage::REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    nothing_is_under_way(&stage, &run)?;
    // A server that ends empties its write-ahead log; one that was emptied has no room of its own to write into.
    stage.program.stop()?;
    stage.program.start(None)?;
    nothing_is_under_way(&stage, &run)?;

    let ballast = data_dir.join("ballast");
    fill(&ballast)?;
    for _ in 0..5 {
        let said = stage.program.say(&["run", "pause", &run])?.refused("CDR0620")?;
        ensure!(said.code == 1 && said.stderr.contains("make room"), "{said:?}");
    }
    ensure!(stage.show(&run)?["run"]["held"] == false, "nothing was changed");
    ensure!(trouble(&stage)?.contains("CDR0620"), "{}", trouble(&stage)?);
    std::fs::remove_file(&ballast)?;
    stage.program.say(&["run", "pause", &run])?.done()?;
    stage.program.say(&["run", "resume", &run])?.done()?;
    stage.wait(&run, "the end of the trouble", |_run| {
        trouble(&stage).is_ok_and(|trouble| trouble.is_empty())
    })?;
    // One line when it began and one when it was over, however often it was tried in between.
    let log = stage.program.log();
    ensure!(log.matches(BEGAN).count() == 1, "{log}");
    ensure!(log.matches(OVER).count() == 1, "{log}");

    // Now while it works: git, the working directory and the database all want room, far more than there is.
    nothing_is_under_way(&stage, &run)?;
    fill(&ballast)?;
    let subject = stage.show(&run)?["gate"]["subject"].clone();
    let subject = subject.as_str().context("a gate")?;
    let mut room = 0;
    while stage
        .program
        .say(&["run", "approve", &run, "--subject", subject])?
        .code
        != 0
    {
        room += 64 * 1024;
        ensure!(room <= 512 * 1024, "an approval takes more than {room} bytes");
        make_room(&ballast, 64 * 1024)?;
    }
    fill(&ballast)?;
    let before = log.len();
    stage.wait(&run, "the end of the disk", |_run| {
        let log = stage.program.log();
        ["no room is left", "disk is full", "No space left"]
            .iter()
            .any(|words| log[before..].contains(words))
    })?;
    stage.program.kill()?;
    nobody_is_left_in(&data_dir)?;
    fill(&ballast)?;
    let said = stage.program.start_in_vain()?;
    ensure!(
        said.code == 1 && said.stderr.contains("error[CDR") && said.stderr.contains("hint: "),
        "{said:?}"
    );
    std::fs::remove_file(&ballast)?;
    stage.program.start(None)?;
    let seen = stage.wait(&run, "its pull request, or a hold", |run| {
        run["run"]["held"] == true || run["run"]["phase"] == "awaiting_merge"
    })?;
    if seen["run"]["held"] == true {
        stage.program.say(&["run", "retry", &run])?.done()?;
    }
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)?;
    // Told once each time, never at every try: in the log of one server, trouble ends before it begins again.
    let log = stage.program.log();
    for server in log.split(STARTED) {
        let (began, over) = (server.matches(BEGAN).count(), server.matches(OVER).count());
        ensure!(
            began == over || began == over + 1,
            "{began} times trouble, {over} times over: {server}"
        );
    }
    stage.program.stop()
}

/// What the log says when a server starts, when it cannot go on, and when it can again.
const STARTED: &str = "commands run without a sandbox";
const BEGAN: &str = "cannot go on; trying again";
const OVER: &str = "works again";

/// Waits until the server has done all that was asked of it.
fn nothing_is_under_way(stage: &Stage, run: &str) -> Result<()> {
    let open = "SELECT id FROM effects WHERE status <> 'done'";
    stage.wait(run, "rest", |_run| {
        column_of_file(stage.program.data_dir(), open).is_ok_and(|busy| busy.is_empty())
    })?;
    Ok(())
}

/// Waits until no process works in a directory: what a killed server had begun still gives room back as it ends.
fn nobody_is_left_in(dir: &Path) -> Result<()> {
    let begun = std::time::Instant::now();
    loop {
        let mut left = Vec::new();
        for process in std::fs::read_dir("/proc")?.filter_map(Result::ok) {
            let fds = std::fs::read_dir(process.path().join("fd")).into_iter().flatten();
            let open = fds.filter_map(Result::ok).map(|fd| fd.path());
            let is_inside =
                |link: PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(dir));
            if open.chain([process.path().join("cwd")]).any(is_inside) {
                left.push(process.file_name());
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < conductor_it::program::HOPELESS,
            "still there: {left:?}"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What the doctor says keeps the server from its work; empty when nothing does.
pub(crate) fn trouble(stage: &Stage) -> Result<String> {
    let doctor = stage.program.say(&["doctor"])?;
    let checks = doctor.data.as_array().context("checks")?;
    let server = checks.iter().find(|check| check["name"] == "server");
    let server = server.context("the server is looked at")?;
    Ok(if server["health"] == "ok" {
        String::new()
    } else {
        server.to_string()
    })
}

/// Set where the test may mount what it likes.
const INSIDE: &str = "CONDUCTOR_IT_OWN_MOUNTS";

/// Tells whether the test may mount what it likes.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this very test with mounts of its own, which go with it, whoever we are.
pub(crate) fn again_with_own_mounts() -> Result<()> {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let name = std::thread::current().name().context("a test's name")?.to_owned();
    let output = command
        .arg(std::env::current_exe()?)
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .context("running unshare")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Takes so many bytes off the ballast.
fn make_room(ballast: &Path, bytes: u64) -> Result<()> {
    let file = std::fs::File::options()
        .write(true)
        .open(ballast)
        .context("opening the ballast")?;
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(bytes)).context("making room")
}

/// Writes until nothing more goes in.
pub(crate) fn fill(ballast: &Path) -> Result<()> {
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(ballast)
        .context("making ballast")?;
    for size in [1 << 20, 4096, 1] {
        let chunk = vec![1_u8; size];
        while let Ok(()) = file.write_all(&chunk) {}
    }
    Ok(())
}

/// SEC-8: each kind of tampering is named by `audit verify`, as what it is and where it is.
async fn tampering_is_named(kept: Kept) -> Result<()> {
    let play = kept.shell(GREETING);
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Watch me")?;
    stage.carry_through(&run).await?;
    let other = stage.start_run("Remove me")?;
    stage.wait_for_phase(&other, "awaiting_plan_approval")?;
    stage.program.say(&["run", "cancel", &other])?.done()?;
    stage.wait_for_clean_up(&other)?;
    stage.program.stop()?;
    let data_dir = stage.program.data_dir().to_owned();
    let copies = tempfile::tempdir()?;
    let last = format!("(SELECT MAX(seq) FROM records WHERE stream = 'run/{run}')");
    let instance = "(SELECT MAX(seq) FROM records WHERE stream = 'instance')";
    let cases = [
        (
            "instance removed",
            "removed",
            "DELETE FROM records WHERE stream = 'instance'".to_owned(),
        ),
        (
            "instance truncated",
            "truncated",
            format!("DELETE FROM records WHERE stream = 'instance' AND seq > {instance} - 4"),
        ),
        (
            "instance's last anchor removed",
            "truncated",
            format!("DELETE FROM records WHERE stream = 'instance' AND seq > {instance} - 2"),
        ),
        (
            "instance record removed",
            "removed",
            "DELETE FROM records WHERE stream = 'instance' AND seq = 2".to_owned(),
        ),
        (
            "changed",
            "changed",
            format!(
                "UPDATE records SET payload = REPLACE(payload, 'Greet', 'Threat') WHERE stream = 'run/{run}' AND payload LIKE '%Greet%'"
            ),
        ),
        (
            "removed",
            "removed",
            format!("DELETE FROM records WHERE stream = 'run/{run}' AND seq = 5"),
        ),
        (
            "reordered",
            "reordered",
            format!(
                "UPDATE records SET seq = CASE seq WHEN 5 THEN -6 ELSE -5 END WHERE stream = 'run/{run}' AND seq IN (5, 6); UPDATE records SET seq = -seq WHERE seq < 0"
            ),
        ),
        (
            "truncated",
            "truncated",
            format!("DELETE FROM records WHERE stream = 'run/{run}' AND seq > {last} - 3"),
        ),
        (
            "removed run",
            "run_removed",
            format!(
                "DELETE FROM records WHERE stream = 'run/{other}'; DELETE FROM runs WHERE run = '{other}'"
            ),
        ),
        (
            "effect changed",
            "effect_changed",
            format!(
                "UPDATE effects SET payload = REPLACE(payload, 'test.sh', 'evil.sh') WHERE run = '{run}'"
            ),
        ),
        (
            "effect forged",
            "effect_changed",
            format!(
                "INSERT INTO effects SELECT '{run}.999.0', run, repo, kind, work, payload, priority, not_before, \
                 created_at, 999, 0, 'done', 1, 0, NULL, NULL FROM effects WHERE run = '{run}' LIMIT 1"
            ),
        ),
        (
            "write changed",
            "write_changed",
            format!("UPDATE forge_writes SET target = 'acme/other' WHERE run = '{run}' AND kind = 'push'"),
        ),
        (
            "write removed",
            "write_changed",
            format!("DELETE FROM forge_writes WHERE run = '{run}' AND kind = 'push'"),
        ),
        (
            "bytes removed",
            "bytes_removed",
            "DELETE FROM blobs WHERE kind = 'diff'".to_owned(),
        ),
        (
            "sha256: bytes changed",
            "bytes_changed",
            kept.either(
                "UPDATE blobs SET bytes = CAST('forged' AS BLOB) WHERE kind = 'plan'",
                "UPDATE blobs SET bytes = CAST('forged' AS BYTEA) WHERE kind = 'plan'",
            )
            .to_owned(),
        ),
    ];
    let program = |name: &str| Program::new(PROGRAM, copies.path().join(name), vec![]);
    kept.copy(&data_dir, &copies.path().join("untouched")).await?;
    ensure!(
        program("untouched").say(&["audit", "verify"])?.code == 0,
        "an untouched copy verifies"
    );
    for (name, kind, sql) in cases {
        let dir = name.replace([' ', '\'', ':'], "-");
        let path = copies.path().join(&dir);
        kept.copy(&data_dir, &path).await?.change(&path, &sql).await?;
        let said = program(&dir).say(&["audit", "verify"])?;
        ensure!(
            said.code == 1,
            "{name} was not noticed: {}{}",
            said.stdout,
            said.stderr
        );
        let named = match name {
            "removed run" => other.as_str(),
            _ if name.starts_with("instance") => "instance",
            _ if name.starts_with("sha256:") => "sha256:",
            _of_the_run => run.as_str(),
        };
        let findings = said.data["findings"].as_array().context("findings")?;
        let is_it = |finding: &serde_json::Value| {
            let tells = |field: &str| finding[field].as_str().unwrap_or_default().contains(named);
            finding["kind"] == kind && (tells("stream") || tells("what"))
        };
        ensure!(
            findings.iter().any(is_it),
            "{name} is not named as {kind}: {}",
            said.stdout
        );
    }
    // Forge writes follow from facts and effects, so they can be told anew.
    let path = copies.path().join("rebuilt");
    kept.copy(&data_dir, &path)
        .await?
        .change(
            &path,
            "DELETE FROM forge_writes; UPDATE runs SET title = 'forged'",
        )
        .await?;
    let rebuilt = program("rebuilt");
    rebuilt.say(&["projections", "rebuild"])?.done()?;
    rebuilt.say(&["audit", "verify"])?.done()?;
    Ok(())
}
