//! How things look in a terminal: tables, times, states, texts of others.
//!
//! No colour carries meaning: every state is a symbol and a word. This module does not know where anything comes from.

pub(crate) mod fold;
pub(crate) mod table;
pub(crate) use conductor_web::words::{sentence, state, text as words, time};
pub(crate) mod run;
pub(crate) mod progress;
