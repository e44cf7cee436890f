//! Hostile tests of the door as a whole: what others write, and what others send.
//!
//! They go by the tables of forms, pages and operations, so that what is added there is attacked by itself.

mod world;
mod dom;
mod text;
mod requests;
