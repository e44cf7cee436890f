//! Placeholder for the figures.
fn main() {}
