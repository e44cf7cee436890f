//! The policy crate, judged from outside.

mod corpus;
mod secrets;
mod redaction;
mod authority;
mod final_policies;
mod lifting;
mod flaws;
mod inspection;
mod supply;
mod seeds;
mod sightings;
