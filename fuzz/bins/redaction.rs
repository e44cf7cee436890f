//! Feeds `targets/redaction.rs`.
#![no_main]

#[path = "../targets/redaction.rs"]
mod redaction;

libfuzzer_sys::fuzz_target!(|input: &[u8]| redaction::check(input));
