//! Feeds `targets/json_rpc.rs`.
#![no_main]

#[path = "../targets/json_rpc.rs"]
mod json_rpc;

libfuzzer_sys::fuzz_target!(|input: &[u8]| json_rpc::check(input));
