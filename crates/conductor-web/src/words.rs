//! What people read about a run, in the same words on a terminal and on a page.
//!
//! This module does not know where the words are shown.

pub mod sentence;
pub mod state;
pub mod text;
pub mod time;
