//! Hostile tests of the door as a whole: what others write, and what others send.
//!
//! They go by the tables of forms, pages and operations, so that what is added there is attacked by itself.

mod world;
mod dom;
mod text;
mod requests;

/// Writes a text as it can stand in an address or a form, every byte of it hidden.
fn encoded(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}
