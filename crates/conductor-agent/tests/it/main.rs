//! Scripted agents through tools, and the stories that they play.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod kit;
mod playing;
mod prompts;
mod stories;
