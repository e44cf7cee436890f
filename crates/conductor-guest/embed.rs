//! Builds the guest as a static program, for a build script to embed.
//!
//! Not part of the library: the crate that embeds the guest says in its `build.rs`
//!
//! ```text
//! #[path = "../conductor-guest/embed.rs"]
//! mod embed;
//!
//! fn main() -> Result<(), String> {
//!     let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
//!     let guest = embed::build(std::path::Path::new(&out))?;
//!     println!("cargo::rustc-env=GUEST={}", guest.display());
//!     embed::sources().iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
//!     Ok(())
//! }
//! ```
//!
//! and `include_bytes!(env!("GUEST"))` where it needs the bytes. `+crt-static` changes how everything is compiled, so
//! it takes a cargo of its own, with a target and a target directory of its own; a shared one would wait for itself.
//! This file does not know who embeds the guest, nor where it is written to later.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script starts cargo and reads what cargo tells it by the environment"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "conductor-guest";

/// Builds the guest into a directory below `out` and returns where it is. If repeated: only what changed is built.
pub(crate) fn build(out: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let directory = out.join("guest");
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            NAME,
            "--bin",
            NAME,
            "--target",
            &target,
        ])
        .current_dir(workspace())
        .env("CARGO_TARGET_DIR", &directory)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        // PID 1 that panics is to end the sandbox, not to unwind; and the bytes are carried in every binary.
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    // Under clippy or a coverage tool the outer cargo names a compiler that must not build this.
    for name in [
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "CARGO_BUILD_TARGET",
    ] {
        command.env_remove(name);
    }
    let ended = command
        .output()
        .map_err(|error| format!("starting cargo for {NAME}: {error}"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("building {NAME} for {target}: {}\n{said}", ended.status));
    }
    Ok(directory.join(target).join("release").join(NAME))
}

/// What the build depends on, for `rerun-if-changed`.
#[allow(dead_code, reason = "only a build script asks for it")]
pub(crate) fn sources() -> [PathBuf; 4] {
    let workspace = workspace();
    let guest = workspace.join("crates").join(NAME);
    [
        guest.join("src"),
        guest.join("embed.rs"),
        guest.join("Cargo.toml"),
        workspace.join("Cargo.lock"),
    ]
}

/// The embedding crate stands beside this one.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
