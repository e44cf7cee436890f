//! Installs axe-core, which finds what keeps people out of a page, for this repository only.
//!
//! It does not know the pages.

use anyhow::Result;

use super::npm;

/// What the tests were written against.
const PACKAGES: [&str; 1] = ["axe-core@4.14.0"];

/// Makes sure of the package.
pub(super) fn ensure() -> Result<()> {
    npm::install("axe", &PACKAGES)
}
