//! Gives Docker the base image that tests start from: found, else pulled, else made by `debootstrap`.
//!
//! The mirror is the one that the machine's own apt uses; none is named here. It does not know what tests put on top.

use std::fs::{self, File};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::{apt, ready};
use crate::process::{self, command};
use crate::workspace;

const TAG: &str = "debian:12";
const SUITE: &str = "bookworm";

/// Makes sure of an image under `TAG`.
pub(super) fn ensure() -> Result<()> {
    if is_there() {
        ready("docker", &format!("image {TAG}"));
        return Ok(());
    }
    // A machine without a way to the image registry fails here in seconds, or hangs: hence the limit.
    let pulled = process::run(command("timeout").args(["60", "docker", "pull", "--quiet", TAG]));
    if pulled.is_err() {
        eprintln!("docker: {TAG} cannot be pulled, debootstrap makes it");
        make()?;
    }
    ensure!(is_there(), "docker reported success but does not know {TAG}");
    ready("docker", &format!("image {TAG}"));
    Ok(())
}

fn is_there() -> bool {
    process::succeeds(command("docker").args(["image", "inspect", TAG]))
}

fn make() -> Result<()> {
    if workspace::find("debootstrap").is_none() {
        apt::install(&["debootstrap"])?;
    }
    ensure!(
        apt::is_root(),
        "debootstrap needs root\nhint: sudo debootstrap --variant=minbase {SUITE} root && sudo tar -C root -c . | docker import - {TAG}"
    );
    let home = workspace::tool("docker");
    let tree = home.join("root");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("could not remove {}", tree.display()))?;
    }
    fs::create_dir_all(&home).with_context(|| format!("could not make {}", home.display()))?;
    let debootstrap = workspace::find("debootstrap").context("debootstrap was installed but is not found")?;
    let log = home.join("debootstrap.log");
    let out = File::create(&log).with_context(|| format!("could not write {}", log.display()))?;
    process::run(
        command(debootstrap)
            .args(["--variant=minbase", SUITE])
            .arg(&tree)
            .args(mirror())
            .stdout(out),
    )
    .with_context(|| format!("debootstrap gave up; its log is {}", log.display()))?;
    let mut tar = command("tar");
    // Docker brings its own /dev; downloaded packages would double the image.
    tar.arg("-C").arg(&tree).args([
        "--numeric-owner",
        "--exclude=./dev/*",
        "--exclude=./var/cache/apt/archives/*.deb",
    ]);
    tar.args(["-c", "."]).stdout(Stdio::piped());
    let mut tar = tar.spawn().context("could not start tar")?;
    let archive = tar.stdout.take().context("tar has no output")?;
    let imported = process::run(
        command("docker")
            .args(["import", "--change", "CMD [\"bash\"]", "-", TAG])
            .stdin(archive),
    );
    ensure!(
        tar.wait().context("could not wait for tar")?.success(),
        "tar could not read {}",
        tree.display()
    );
    imported?;
    fs::remove_dir_all(&tree).with_context(|| format!("could not remove {}", tree.display()))
}

/// Finds the archive that this machine's apt reads the suite from, if apt names one.
fn mirror() -> Option<String> {
    let policy = process::capture(command("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE) $(REPO_URI) $(RELEASE)",
    ]))
    .ok()?;
    mirror_in(&policy)
}

fn mirror_in(index_targets: &str) -> Option<String> {
    index_targets.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (address, release) = (words.next()?, words.next()?);
        (release == SUITE).then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_that_apt_uses_for_the_suite_itself() {
        let targets = "http://a.example http://a.example/debian-security/ bookworm-security\n\
                       http://b.example http://b.example/debian/ bookworm\n";
        assert_eq!(mirror_in(targets), Some("http://b.example/debian/".to_owned()));
        assert_eq!(mirror_in("http://a.example http://a.example/apt/ other\n"), None);
        assert_eq!(mirror_in(""), None);
    }
}
