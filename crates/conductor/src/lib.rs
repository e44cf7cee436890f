//! The `conductor` program: reads the command line, runs one command, ends with its exit code.
//!
//! Everything it can do is a file under `command/`. This module does not know any command.

mod cli;
mod exit;
mod environment;
mod out;
mod data_dir;
mod storage;
mod server_file;
mod client;
mod source;
mod session;
mod signals;
mod tls;
mod settings;
mod clock;
mod executors;
mod place;
mod hook;
mod wire;
mod server;
mod show;
mod command;
mod demo;

use clap::Parser;

use std::sync::Arc;

use conductor_gateway::egress::{Internet, Outside};

/// Runs the program; a library call so that the story tests can build it with crash points.
pub fn main() -> std::process::ExitCode {
    main_before(Arc::new(Internet))
}

/// Runs the program before another world than the internet. The program that is shipped never calls this: it has no way to
/// name one, so no setting, flag or variable can lead a sandbox past the check of addresses.
#[doc(hidden)]
pub fn main_before(outside: Arc<dyn Outside>) -> std::process::ExitCode {
    session::run(cli::Cli::parse(), outside).into()
}
