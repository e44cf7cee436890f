//! Installs the reference validator of skills from the package registry, for this repository only.
//!
//! It does not know what is validated.

use anyhow::Result;

use super::python;

/// What the tests were written against.
const VERSION: &str = "0.1.1";

/// Makes sure of a Python environment with the validator in it.
pub(super) fn ensure() -> Result<()> {
    python::environment("skills-ref", "skills_ref", VERSION)
}
