//! Feeds `targets/paths.rs`.
#![no_main]

#[path = "../targets/paths.rs"]
mod paths;

libfuzzer_sys::fuzz_target!(|input: &[u8]| paths::check(input));
