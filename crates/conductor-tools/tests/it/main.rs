//! The tools' server, met by hostile bytes, by strangers, and by the public conformance suite.

mod conformance;
mod fixtures;
mod crowds;
mod over_http;
mod over_pipes;
mod told;
mod seeds;
