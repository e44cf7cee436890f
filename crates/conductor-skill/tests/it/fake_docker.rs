//! The contract on a docker program that is a script: every word that it hears is written down.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_contract::target::TargetSubject;
use conductor_port::target::{Changed, Mode, Placement, TargetAdapter as _, TargetFault};
use conductor_skill::docker::{Docker, DockerAdapter};
use conductor_skill::environment::ContainerName;

use crate::kit;

/// A container is a directory; paths in it are paths below that directory. Knows what the adapter says and no more.
const FAKE: &str = r#"#!/bin/sh
here=@HERE@
printf '%s\n' "$*" >> "$here/log"
verb=$1; shift
case $verb in
inspect)
  cat "$here/answer" || exit 1 ;;
exec)
  [ "$1" = f00d ] || { echo "Error: No such container: $1" >&2; exit 1; }
  shift
  HOME=$here/c/home/u; export HOME
  cd "$here/c" || exit 1
  exec "$@" ;;
cp)
  if [ "$1" = - ]; then
    to=${2#f00d:}
    [ -d "$to" ] || { echo "Error response from daemon: Could not find the file $to in container f00d" >&2; exit 1; }
    exec tar -x --no-same-owner -f - -C "$to"
  fi
  from=${1#f00d:}
  [ -e "$from" ] || [ -L "$from" ] || { echo "Error response from daemon: Could not find the file $from" >&2; exit 1; }
  exec tar -c -f - -C "$(dirname -- "$from")" -- "$(basename -- "$from")" ;;
*)
  echo "unknown: $verb" >&2; exit 2 ;;
esac
"#;

const RUNNING: &str = r#"{"id":"f00d","state":{"Running":true,"Paused":false},"user":"u","env":["PATH=/bin"],"mounts":[],"host":{}}"#;

pub(crate) fn fake(here: &Path) -> Docker {
    let program = here.join("docker");
    kit::program(&program, &FAKE.replace("@HERE@", &here.display().to_string()));
    kit::write(&here.join("answer"), RUNNING);
    fs::create_dir_all(here.join("c/home/u")).expect("made");
    Docker::at(&program, &kit::environment())
}

fn adapter(docker: Docker) -> DockerAdapter {
    DockerAdapter::new(docker, ContainerName::parse("box").expect("a name"))
}

async fn subject() -> TargetSubject {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let sources = dir.path().join("sources");
    fs::create_dir(&sources).expect("made");
    TargetSubject {
        adapter: Arc::new(adapter(fake(dir.path()))),
        root: dir.path().join("c/home/u/.agent/skills"),
        sources,
        mode: Mode::Symlink,
        guard: Box::new(dir),
    }
}

conductor_contract::target_contract!(crate::fake_docker::subject);

fn place(dir: &Path) -> (PathBuf, Placement) {
    let source = kit::skill(dir, "alpha", "one");
    (
        source,
        Placement::new(dir.join("c/home/u/skills"), "alpha").expect("a place"),
    )
}

/// SKILL-3. Defect 9: of a stopped container something else was told than what to do.
#[tokio::test]
async fn defect_09_a_container_that_does_not_run_is_told_with_what_to_do_before_anything_else() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let adapter = adapter(fake(dir.path()));
    let (source, place) = place(dir.path());
    for (state, what, hint) in [
        (
            r#"{"Running":false}"#,
            "Container 'box' is not running",
            "Start it with `docker start box`",
        ),
        (
            r#"{"Running":true,"Paused":true}"#,
            "Container 'box' is paused",
            "Let it go on with `docker unpause box`",
        ),
    ] {
        kit::write(
            &dir.path().join("answer"),
            &RUNNING.replace(r#"{"Running":true,"Paused":false}"#, state),
        );
        fs::write(dir.path().join("log"), "").expect("emptied");
        let expected = TargetFault::Unhealthy {
            what: what.into(),
            hint: hint.into(),
        };
        assert_eq!(
            adapter.install(&source, &place, Mode::Copy, Changed::Keep).await,
            Err(expected.clone())
        );
        assert_eq!(
            adapter.uninstall(&place, Changed::Keep).await,
            Err(expected.clone())
        );
        assert_eq!(adapter.health_check().await, Err(expected));
        let log = fs::read_to_string(dir.path().join("log")).expect("read");
        assert!(log.lines().all(|line| line.starts_with("inspect ")), "{log}");
    }
}

/// SKILL-3. Defect 19: the probe for docker was a blocking process; here none is started at all.
#[test]
fn defect_19_a_missing_docker_is_told_when_the_adapter_is_made() {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let environment = [("PATH".into(), empty.path().as_os_str().to_owned())];
    let fault = Docker::find(&environment).expect_err("there is none");
    assert_eq!(
        fault,
        TargetFault::Unavailable {
            what: "Docker CLI not found".into(),
            hint: "install Docker or ensure `docker` is in your PATH".into(),
        }
    );
    kit::program(&empty.path().join("docker"), "#!/bin/sh\ntouch started\n");
    Docker::find(&environment).expect("there is one now");
    assert!(!empty.path().join("started").exists());
}

/// SKILL-2: a link cannot lead out of a container, and whoever asked for one is told.
#[tokio::test]
async fn a_link_becomes_a_copy_with_a_warning() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let adapter = adapter(fake(dir.path()));
    let (source, place) = place(dir.path());
    let installed = adapter
        .install(&source, &place, Mode::Symlink, Changed::Keep)
        .await
        .expect("installed");
    assert_eq!(installed.mode, Mode::Copy);
    assert!(installed.warnings[0].contains("was copied"), "{installed:?}");
}

/// SKILL-3. Defect 19: what did not arrive is told file by file, and nothing is renamed into place.
#[tokio::test]
async fn defect_19_what_did_not_arrive_is_told_file_by_file_and_nothing_takes_its_place() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let docker = fake(dir.path());
    let (source, place) = place(dir.path());
    kit::write(&source.join("a.txt"), "a");
    kit::write(&source.join("b/c.txt"), "c");
    adapter(docker.clone())
        .install(&source, &place, Mode::Copy, Changed::Keep)
        .await
        .expect("installed");
    kit::write(&source.join("a.txt"), "new");
    // A copy that loses one file, spoils another, and says that all is well.
    let lossy = FAKE
        .replace("@HERE@", &dir.path().display().to_string())
        .replace("exec tar -x", "tar -x")
        .replace(
            r#"-C "$to""#,
            r#"-C "$to"; cd "$to"/.conductor-new-alpha && rm a.txt && echo x > b/c.txt; exit 0"#,
        );
    kit::program(&dir.path().join("docker"), &lossy);
    let put = adapter(docker)
        .install(&source, &place, Mode::Copy, Changed::Keep)
        .await;
    let Err(TargetFault::Incomplete { path, files }) = put else {
        panic!("{put:?}");
    };
    let told: Vec<String> = files
        .iter()
        .map(|file| format!("{} {}", file.path, file.why))
        .collect();
    assert_eq!(told, ["a.txt is missing", "b/c.txt has other content"]);
    assert!(path.starts_with("box:"), "{path}");
    assert_eq!(
        fs::read_to_string(place.path().join("a.txt")).expect("the old one stands"),
        "a"
    );
    let left: Vec<_> = fs::read_dir(place.root())
        .expect("listed")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(left, ["alpha"]);
}

/// Defect 17, and the issue's item 1: nothing that comes from outside is part of a script's text.
#[tokio::test]
async fn scripts_are_the_same_whatever_the_paths() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let adapter = adapter(fake(dir.path()));
    let (source, place) = place(dir.path());
    let strange = Placement::new(place.root().join("$(touch pwned)"), "alpha").expect("a place");
    adapter
        .install(&source, &strange, Mode::Copy, Changed::Keep)
        .await
        .expect("installed");
    let log = fs::read_to_string(dir.path().join("log")).expect("read");
    // Each script ends before the word `conductor`, after which arguments stand.
    for call in log.split("exec f00d sh -c ").skip(1) {
        let script = call.split(" conductor ").next().expect("a script");
        assert!(!script.contains("touch"), "{script}");
    }
    assert!(!dir.path().join("c/pwned").exists());
}
