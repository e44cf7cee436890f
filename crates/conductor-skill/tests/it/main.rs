//! Skills against real directories, a fake docker and a real engine.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start docker, python and the programs under test"
)]

mod kit;
mod local;
mod fake_docker;
mod real_docker;
mod oracle;
