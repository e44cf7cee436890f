//! What people read about runs and the instance, in the same words on a terminal and on a page.
//!
//! This module does not know where the words are shown.

mod instance;
pub mod sentence;
pub mod state;
pub mod text;
pub mod time;
