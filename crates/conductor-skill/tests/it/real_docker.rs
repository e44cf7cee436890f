//! The contract on a real engine, in a container that shares nothing with this machine, and what breaks half-way.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conductor_contract::target::TargetSubject;
use conductor_port::target::{Changed, Found, Installed, Mode, Placement, TargetAdapter as _, TargetFault};
use conductor_skill::docker::{Docker, DockerAdapter};
use conductor_skill::environment::ContainerName;
use tempfile::TempDir;

use crate::kit::{self, Container, docker, docker_ok};

async fn subject() -> TargetSubject {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let container = Container::start(&["--env", "HOME=/home/u"]);
    TargetSubject {
        adapter: Arc::new(adapter(&container, None)),
        root: PathBuf::from("/home/u/.agent/skills"),
        sources: dir.path().to_owned(),
        mode: Mode::Copy,
        guard: Box::new((dir, container)),
    }
}

conductor_contract::target_contract!(crate::real_docker::subject);

fn adapter(container: &Container, program: Option<&Path>) -> DockerAdapter {
    let environment = kit::environment();
    let docker = match program {
        Some(program) => Docker::at(program, &environment),
        None => Docker::find(&environment).expect("docker is set up by `cargo xtask setup docker`"),
    };
    DockerAdapter::new(docker, ContainerName::parse(&container.name).expect("a name"))
}

struct Stage {
    dir: TempDir,
    source: PathBuf,
    place: Placement,
}

impl Stage {
    fn new(root: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = kit::skill(dir.path(), "alpha", "one");
        for number in 0..20 {
            kit::write(&source.join(format!("data/{number}.txt")), &"x".repeat(2000));
        }
        Self {
            source,
            place: Placement::new(root, "alpha").expect("a place"),
            dir,
        }
    }

    /// A docker program that does `action` before its first `verb`, then what it was asked.
    fn meddling(&self, verb: &str, action: &str) -> PathBuf {
        let program = self.dir.path().join("docker");
        let done = self.dir.path().join("done");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = {verb} ] && [ ! -e {done} ]; then touch {done}; {action} >/dev/null 2>&1; fi\nexec docker \"$@\"\n",
            done = done.display()
        );
        kit::program(&program, &text);
        program
    }

    async fn install(&self, adapter: &DockerAdapter) -> Result<Installed, TargetFault> {
        adapter
            .install(&self.source, &self.place, Mode::Copy, Changed::Keep)
            .await
    }

    async fn found(&self, adapter: &DockerAdapter) -> Found {
        adapter
            .inspect(std::slice::from_ref(&self.place))
            .await
            .expect("answers")
            .remove(0)
    }
}

fn hint(put: &Result<Installed, TargetFault>) -> &str {
    match put {
        Err(TargetFault::Failed { hint, .. } | TargetFault::Unhealthy { hint, .. }) => hint,
        other => panic!("{other:?}"),
    }
}

/// The container is paused between the copy and the check; after it goes on, the same call mends everything.
#[tokio::test]
async fn a_container_that_is_paused_half_way_keeps_its_old_version() {
    let container = Container::start(&[]);
    let stage = Stage::new("/srv/skills");
    let plain = adapter(&container, None);
    let old = stage.install(&plain).await.expect("installed");
    kit::write(&stage.source.join("new.txt"), "two");
    let program = stage.meddling("cp", &format!("docker pause {}", container.name));
    let put = stage.install(&adapter(&container, Some(&program))).await;
    assert_eq!(
        hint(&put),
        format!("Let it go on with `docker unpause {}`", container.name)
    );
    docker_ok(&["unpause", &container.name]);
    let expected = Found::Managed {
        mode: Mode::Copy,
        recorded: old.digest.clone(),
        actual: old.digest,
    };
    assert_eq!(stage.found(&plain).await, expected);
    stage.install(&plain).await.expect("mended");
    assert_eq!(
        container.sh("ls -A /srv/skills; cat /srv/skills/alpha/new.txt"),
        "alpha\ntwo"
    );
}

/// The container is stopped half-way: nothing hangs, nothing is half there, and the hint says how to go on.
#[tokio::test]
async fn a_container_that_is_stopped_half_way_is_told_and_holds_no_half_skill() {
    let container = Container::run(&["--rm=false"], kit::IMAGE, &["sleep", "infinity"]);
    let stage = Stage::new("/srv/skills");
    let program = stage.meddling("cp", &format!("docker stop --time 0 {}", container.name));
    let put = stage.install(&adapter(&container, Some(&program))).await;
    assert!(
        hint(&put).contains(&format!("docker start {}", container.name)),
        "{put:?}"
    );
    docker_ok(&["start", &container.name]);
    let plain = adapter(&container, None);
    assert_eq!(stage.found(&plain).await, Found::Absent);
    stage.install(&plain).await.expect("installed");
    assert_eq!(container.sh("ls -A /srv/skills"), "alpha");
}

/// The container is removed half-way and another takes its name: the other one is not touched.
#[tokio::test]
async fn a_container_that_is_made_anew_half_way_is_not_taken_for_the_old_one() {
    let container = Container::start(&[]);
    let stage = Stage::new("/srv/skills");
    let name = &container.name;
    let action = format!(
        "docker rm --force {name}; docker run --detach --rm --network=none --init --name {name} {} sleep infinity",
        kit::IMAGE
    );
    let program = stage.meddling("cp", &action);
    let put = stage.install(&adapter(&container, Some(&program))).await;
    assert!(put.is_err(), "{put:?}");
    assert_eq!(
        container.sh("ls -A /srv"),
        "",
        "the new container is as it was made"
    );
    let gone = adapter(&container, None);
    docker(&["rm", "--force", name]);
    let put = stage.install(&gone).await;
    assert_eq!(
        put,
        Err(TargetFault::Gone {
            what: format!("Container '{name}' does not exist"),
            hint: format!("Create it with `docker run -d --name {name} …`, or correct the name"),
        })
    );
}

/// A volume that is full takes a part of the files: nothing is put into place, the old version stands.
#[tokio::test]
async fn a_full_disk_leaves_the_old_version_and_names_the_files() {
    let volume = format!("conductor-skill-test-{}-full", std::process::id());
    docker_ok(&[
        "volume",
        "create",
        "--driver=local",
        "--opt=type=tmpfs",
        "--opt=device=tmpfs",
        "--opt=o=size=256k",
        &volume,
    ]);
    {
        let container = Container::start(&["--volume", &format!("{volume}:/srv/skills")]);
        let stage = Stage::new("/srv/skills");
        let plain = adapter(&container, None);
        let old = stage.install(&plain).await.expect("there is room for the first");
        for number in 0..60 {
            kit::write(
                &stage.source.join(format!("data/more-{number}.txt")),
                &"y".repeat(4000),
            );
        }
        let put = stage.install(&plain).await;
        match &put {
            Err(TargetFault::Incomplete { files, .. }) => {
                assert!(
                    files.iter().any(|file| file.path.starts_with("data/more-")),
                    "{files:?}"
                );
                assert!(
                    files.iter().all(|file| file.why.contains("no space left")),
                    "{files:?}"
                );
            }
            other => panic!("{other:?}"),
        }
        let digest = old.digest;
        let expected = Found::Managed {
            mode: Mode::Copy,
            recorded: digest.clone(),
            actual: digest,
        };
        assert_eq!(stage.found(&plain).await, expected);
        assert_eq!(container.sh("ls -A /srv/skills"), "alpha", "no left-overs");
    }
    docker_ok(&["volume", "rm", &volume]);
}

/// A read-only file system is told before anything is tried; a writable volume in it takes skills.
#[tokio::test]
async fn a_read_only_container_is_told_and_a_volume_in_it_is_written() {
    let container = Container::start(&["--read-only", "--volume", "/srv/skills"]);
    let plain = adapter(&container, None);
    let put = Stage::new("/opt/skills").install(&plain).await;
    assert!(hint(&put).contains("--read-only"), "{put:?}");
    Stage::new("/srv/skills")
        .install(&plain)
        .await
        .expect("installed");
}

/// A user who is not root gets files of their own, where they may write, and is told where not.
#[tokio::test]
async fn a_user_who_is_not_root_owns_what_arrives() {
    let container = Container::start(&["--user", "1234:4321"]);
    container.sh("mkdir /srv/mine && chown 1234:4321 /srv/mine");
    let plain = adapter(&container, None);
    let stage = Stage::new("/srv/mine/skills");
    stage.install(&plain).await.expect("installed");
    assert_eq!(
        container.sh("stat -c %u:%g /srv/mine/skills /srv/mine/skills/alpha /srv/mine/skills/alpha/SKILL.md"),
        "1234:4321\n1234:4321\n1234:4321"
    );
    kit::write(&stage.source.join("new.txt"), "two");
    stage.install(&plain).await.expect("updated by the same user");
    plain
        .uninstall(&stage.place, Changed::Keep)
        .await
        .expect("removed by the same user");
    assert_eq!(container.sh("ls -A /srv/mine/skills"), "");
    let put = Stage::new("/opt/skills").install(&plain).await;
    assert!(hint(&put).contains("may write"), "{put:?}");
    assert_eq!(container.sh("ls -A /opt"), "");
}

/// A container without a shell, or anything else that could be started.
fn bare() -> (String, Container) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let image = format!("conductor-skill-test-bare-{}-{number}", std::process::id());
    let dir = tempfile::tempdir().expect("a temporary directory");
    // The one program there is: a loop that waits. Made from the image that every test has.
    let maker = Container::start(&[]);
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("lib64")).expect("made");
    for file in [
        "/usr/bin/sleep",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libc.so.6",
    ] {
        let to = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a parent")).expect("made");
        docker_ok(&[
            "cp",
            "--follow-link",
            &format!("{}:{file}", maker.name),
            &to.display().to_string(),
        ]);
    }
    let tar = dir.path().join("bare.tar");
    let packed = std::process::Command::new("tar")
        .args([
            "-c",
            "-f",
            &tar.display().to_string(),
            "-C",
            &root.display().to_string(),
            ".",
        ])
        .status();
    assert!(packed.expect("tar starts").success());
    docker_ok(&["import", &tar.display().to_string(), &image]);
    let container = Container::run(&[], &image, &["/usr/bin/sleep", "infinity"]);
    (image, container)
}

/// SKILL-3: without a shell, docker itself carries in and reads back; what cannot be done is said.
#[tokio::test]
async fn a_container_without_a_shell_takes_skills_too() {
    let (image, container) = bare();
    let plain = adapter(&container, None);
    let stage = Stage::new("/home/agent/.claude/skills");
    assert_eq!(stage.found(&plain).await, Found::Absent);
    let first = stage.install(&plain).await.expect("installed");
    assert!(
        first.warnings.iter().any(|warning| warning.contains("no shell")),
        "{first:?}"
    );
    assert!(
        matches!(stage.found(&plain).await, Found::Managed { recorded, actual, .. } if recorded == first.digest && actual == recorded)
    );
    kit::write(&stage.source.join("new.txt"), "two");
    let second = stage.install(&plain).await.expect("updated");
    assert!(matches!(stage.found(&plain).await, Found::Managed { actual, .. } if actual == second.digest));
    let out = stage.dir.path().join("out");
    docker_ok(&[
        "cp",
        "--follow-link",
        &format!("{}:/home/agent/.claude/skills/alpha/new.txt", container.name),
        &out.display().to_string(),
    ]);
    assert_eq!(fs::read_to_string(out).expect("read"), "two");
    let taken = plain.uninstall(&stage.place, Changed::Keep).await;
    assert!(
        matches!(&taken, Err(TargetFault::Failed { what, .. }) if what.contains("no program that removes files")),
        "{taken:?}"
    );
    drop(container);
    docker(&["rmi", &image]);
}

/// A copy into a container without a shell that breaks off half-way: the old version stands behind its link.
#[tokio::test]
async fn a_copy_without_a_shell_that_breaks_off_keeps_the_old_version() {
    let (image, container) = bare();
    let plain = adapter(&container, None);
    let stage = Stage::new("/srv/skills");
    let old = stage.install(&plain).await.expect("installed");
    kit::write(&stage.source.join("new.txt"), "two");
    // The first part of the stream arrives; its head alone is longer than what is let through.
    let program = stage.dir.path().join("docker");
    kit::program(
        &program,
        "#!/bin/sh\nif [ \"$1 $2\" = 'cp -' ]; then head -c 9000 | docker \"$@\"; else exec docker \"$@\"; fi\n",
    );
    let put = stage.install(&adapter(&container, Some(&program))).await;
    assert!(
        matches!(
            put,
            Err(TargetFault::Incomplete { .. } | TargetFault::Failed { .. })
        ),
        "{put:?}"
    );
    let expected = Found::Managed {
        mode: Mode::Copy,
        recorded: old.digest.clone(),
        actual: old.digest,
    };
    assert_eq!(stage.found(&plain).await, expected);
    stage.install(&plain).await.expect("mended");
    drop(container);
    docker(&["rmi", &image]);
}

/// The shell goes away half-way: the old version stands, and the next call does without.
#[tokio::test]
async fn a_shell_that_goes_away_half_way_is_told() {
    let container = Container::start(&[]);
    let stage = Stage::new("/srv/skills");
    let program = stage.meddling(
        "cp",
        &format!("docker exec {} rm /bin/sh /usr/bin/sh", container.name),
    );
    let put = stage.install(&adapter(&container, Some(&program))).await;
    assert!(put.is_err(), "{put:?}");
    let plain = adapter(&container, None);
    assert_eq!(stage.found(&plain).await, Found::Absent);
}

/// Defect 8: through a bind mount a link to the host's store was written. Defect 7 in the flesh: the inner mount counts.
#[tokio::test]
async fn defect_08_through_a_bind_mount_a_copy_arrives_that_both_sides_can_read() {
    let host = tempfile::tempdir().expect("a temporary directory");
    let (outer, inner) = (host.path().join("outer"), host.path().join("inner"));
    fs::create_dir_all(outer.join(".claude")).expect("made");
    fs::create_dir(&inner).expect("made");
    let container = Container::start(&[
        "--volume",
        &format!("{}:/agent", outer.display()),
        "--volume",
        &format!("{}:/agent/.claude:ro", inner.display()),
    ]);
    let plain = adapter(&container, None);
    let stage = Stage::new("/agent/skills");
    let installed = plain
        .install(&stage.source, &stage.place, Mode::Symlink, Changed::Keep)
        .await
        .expect("installed");
    assert_eq!(installed.mode, Mode::Copy);
    assert!(outer.join("skills/alpha/SKILL.md").is_file() && !outer.join("skills/alpha").is_symlink());
    container.sh("test -f /agent/skills/alpha/SKILL.md");
    let put = Stage::new("/agent/.claude/skills").install(&plain).await;
    assert!(hint(&put).contains("mount it writable"), "{put:?}");
}
