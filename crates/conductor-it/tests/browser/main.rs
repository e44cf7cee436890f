//! Whole stories in a real browser: the real program, the embedded forge, Chromium.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read files and start the program under test"
)]

#[path = "../it/kept.rs"]
#[allow(dead_code, reason = "the stories without a browser use all of it")]
mod kept;
#[path = "../../../conductor-store/tests/it/postgres.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the store's tests use all of it")]
mod postgres;
mod desk;
mod line;
mod story;
mod hands;
mod unseen;
mod racing;
mod pages;
mod hostile;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_conductor-under-test");

/// The scenario of most stories.
const GREETING: &str = include_str!("../../testdata/scenarios/greeting.toml");
