//! The seeds of the fuzzer's target for the diff parser, in every test run; `cargo xtask long fuzz` goes on from them.

use std::path::Path;

#[path = "../../../../fuzz/targets/diff.rs"]
mod diff;

/// S-10.
#[test]
fn every_seed_of_the_fuzzer_holds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/diff");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("the seeds are there") {
        let seed = seed.expect("a readable directory").path();
        diff::check(&std::fs::read(&seed).expect("a readable seed"));
        count += 1;
    }
    assert!(count > 5, "{count} seeds");
}
