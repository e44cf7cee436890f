//! Chance that can be repeated: the same seed draws the same numbers.
//!
//! This module does not know what the numbers decide.

use std::sync::{Mutex, PoisonError};

/// A seeded source of numbers (SplitMix64).
#[derive(Debug)]
pub struct Chance(Mutex<u64>);

impl Chance {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// Draws a number below `bound`; zero when there is none.
    pub fn below(&self, bound: u64) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or(0)
    }

    /// Tells whether something happens that does so `per_mille` times in a thousand.
    pub fn strikes(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}
