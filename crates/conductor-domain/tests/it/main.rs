//! The run machine, tested by stories in text files, by laws over random histories, and by its printed matrix.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test tells what it knows and lets the rest pass by name"
)]

mod world;
mod script;
mod scenarios;
mod outcomes;
mod laws;
mod look;
mod markdown;
mod rules;
mod matrix;
mod instance;
mod egress;
mod skill;
mod board;
mod staff;
mod values;
mod figures;
mod vocabulary;
