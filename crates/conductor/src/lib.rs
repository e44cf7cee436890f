//! The `conductor` program: reads the command line, runs one command, ends with its exit code.
//!
//! Everything it can do is a file under `command/`. This module does not know any command.

mod cli;
mod exit;
mod environment;
mod out;
mod data_dir;
mod server_file;
mod client;
mod source;
mod session;
mod settings;
mod clock;
mod wire;
mod server;
mod show;
mod command;
mod demo;

use clap::Parser;

/// Runs the program; a library call so that the story tests can build it with crash points.
pub fn main() -> std::process::ExitCode {
    session::run(cli::Cli::parse()).into()
}
