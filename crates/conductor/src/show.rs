//! How things look in a terminal: tables, times, states, texts of others.
//!
//! No colour carries meaning: every state is a symbol and a word. This module does not know where anything comes from.

pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod state;
pub(crate) mod sentence;
pub(crate) mod run;
pub(crate) mod progress;
