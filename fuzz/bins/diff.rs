//! Feeds `targets/diff.rs`.
#![no_main]

#[path = "../targets/diff.rs"]
mod diff;

libfuzzer_sys::fuzz_target!(|input: &[u8]| diff::check(input));
