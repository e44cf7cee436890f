//! Installs schemathesis, which asks the API whatever its description allows and more, and judges the answers by it.
//!
//! It does not know the API.

use anyhow::Result;

use super::python;

const VERSION: &str = "4.32.5";

/// Makes sure of a Python environment with it.
pub(super) fn ensure() -> Result<()> {
    python::environment("schemathesis", "schemathesis", VERSION)
}
