//! The program that is PID 1 of every sandbox: runs commands and touches files for the host, and nothing else.
//!
//! Everything else in the sandbox runs as the same user and is hostile. It can neither speak for this program, nor
//! look into it, nor end it (S-14): its channel is moved away and closed on exec, its memory is not dumpable, and the
//! kernel shields PID 1 from signals. When the channel ends, everything in the sandbox ends.
//! This program does not know what its commands are for, and has no opinion of them.

mod settings;
mod harden;
mod channel;
mod children;
mod tree;
mod command;
mod output;
mod walks;
mod forward;
mod serve;

use std::process::ExitCode;

use settings::{Protection, Settings};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error);
            ExitCode::from(2)
        }
    }
}

/// Hardens itself before anything of the host's is read, then serves until the channel ends.
fn run() -> Result<(), String> {
    let settings = Settings::read(std::env::args_os().skip(1))?;
    let channel = channel::take()?;
    harden::harden(&settings)?;
    let served = serve::Guest::new(&settings, channel).and_then(serve::Guest::serve);
    tree::end_everything();
    served
}

/// Tells whoever started it why it ends. Nothing else is ever printed: the rest travels in frames.
#[allow(clippy::print_stderr, reason = "there is no channel yet, or no longer")]
fn say(error: &str) {
    eprintln!("conductor-guest: {error}");
}
