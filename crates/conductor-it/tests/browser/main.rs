//! Whole stories in a real browser: the real program, the embedded forge, Chromium.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read files and start the program under test"
)]

mod desk;
mod line;
mod story;
mod hands;
mod racing;
mod pages;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_conductor-under-test");

/// The scenario of most stories.
const GREETING: &str = include_str!("../../testdata/scenarios/greeting.toml");
