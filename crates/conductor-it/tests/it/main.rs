//! Whole stories with the real program: a server process, its command line, the embedded forge, real git.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read files and start the program under test"
)]

mod kept;
mod happy;
mod told;
mod found;
mod afar;
mod interface;
mod crash;
mod steering;
mod several;
mod served;
mod notices;
mod egress;
mod containers;
mod skills;
mod trouble;
mod repository;
mod records;
mod damage;
mod truth;
mod inspected;
mod policies;
mod names;
mod merging;
mod strangers;
mod between;
mod faults;
mod doctor;
mod team;
mod teams;
#[path = "../../../conductor-store/tests/it/postgres.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the store's tests use all of it")]
mod postgres;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_conductor-under-test");

/// The scenario of most stories.
const GREETING: &str = include_str!("../../testdata/scenarios/greeting.toml");
