//! The seeds of the fuzzer's target for JSON-RPC, in every test run; `cargo xtask long fuzz` goes on from them.

use std::path::Path;

#[path = "../../../../fuzz/targets/json_rpc.rs"]
mod json_rpc;

/// TOOL-1.
#[test]
fn every_seed_of_the_fuzzer_holds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/json_rpc");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("the seeds are there") {
        let seed = seed.expect("a readable directory").path();
        json_rpc::check(&std::fs::read(&seed).expect("a readable seed"));
        count += 1;
    }
    assert!(count > 5, "{count} seeds");
}
