//! Installs public clients of the Model Context Protocol, for this repository only: its conformance suite, its inspector,
//! and a server to measure against.
//!
//! It does not know what they are asked to do.

use anyhow::Result;

use super::npm;

/// What the tests were written against.
const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// Makes sure of the packages.
pub(super) fn ensure() -> Result<()> {
    npm::install("mcp", &PACKAGES)
}
