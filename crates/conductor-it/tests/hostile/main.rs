//! Hostile worktrees against real git and real sandboxes: one story per way in that was tried (S-4…S-13, SECURITY §10).
//!
//! Each story is told twice. Once with the protection switched off, that is with git started on the host in the worktree
//! as a first design would (`naive`), where its canary must sing; then as Conductor works, where it must not. So no story
//! proves less than it claims.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests play agents and people, and say where they cannot go on"
)]

#[path = "../../../conductor-git/tests/it/world.rs"]
#[allow(dead_code, reason = "the tests of conductor-git use all of it")]
mod world;
mod naive;
mod ground;
mod commands;
mod files;
mod unseen;
mod bounds;
mod fresh;
mod left;

/// S-7: every story stands in the matrix that `cargo xtask test` prints.
#[test]
fn the_matrix_has_every_story() {
    let matrix = include_str!("../../../../docs/protections.md");
    for (file, source) in [
        ("commands", include_str!("commands.rs")),
        ("files", include_str!("files.rs")),
        ("unseen", include_str!("unseen.rs")),
        ("bounds", include_str!("bounds.rs")),
        ("fresh", include_str!("fresh.rs")),
        ("left", include_str!("left.rs")),
    ] {
        let names = source
            .lines()
            .filter_map(|line| line.strip_prefix("async fn ")?.strip_suffix("() {"));
        let names: Vec<&str> = names.collect();
        assert!(!names.is_empty(), "{file}");
        for name in names {
            assert!(
                matrix.contains(&format!("`conductor-it::hostile {file}::{name}`")),
                "{file}::{name}"
            );
        }
    }
}
