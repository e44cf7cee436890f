//! Leaves a picture of every page, in light and dark, on a desk and in a hand, in `target/screenshots`.
//!
//! The test that judges every page takes them, so that pictures and judgement are of the same pages. It does not know
//! the pages.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::process::{self, cargo};
use crate::{setup, workspace};

const TEST: &str = "test(in_a_file::every_page_is_open_to_everybody_in_every_look)";

/// Takes the pictures anew and says where they are.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    ensure!(arguments.is_empty(), "screenshots takes no arguments");
    setup::for_pages()?;
    let pictures = workspace::target().join("screenshots");
    if pictures.exists() {
        std::fs::remove_dir_all(&pictures)?;
    }
    let mut test = cargo("nextest run --workspace --locked --test browser -E");
    process::run(test.arg(TEST).env("CONDUCTOR_SCREENSHOTS", "1"))?;
    println!("{}", pictures.display());
    Ok(ExitCode::SUCCESS)
}
