//! The seeds of the fuzzer's target for paths, in every test run; `cargo xtask long fuzz` goes on from them.

use std::path::Path;

#[path = "../../../../fuzz/targets/paths.rs"]
mod paths;

/// S-46.
#[test]
fn every_seed_of_the_fuzzer_holds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/paths");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("the seeds are there") {
        let seed = seed.expect("a readable directory").path();
        paths::check(&std::fs::read(&seed).expect("a readable seed"));
        count += 1;
    }
    assert!(count > 5, "{count} seeds");
}
