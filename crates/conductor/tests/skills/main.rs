//! `conductor skills` as people and scripts use it: the real program, real git, a real engine.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start the program under test, git and docker"
)]

mod stage;
mod defects;
mod sources;
mod words;
mod shapes;
mod places;
