//! What can happen at the site, whoever asks for it: a REST call, a push, or a person in the browser.
//!
//! Each act checks its rules, changes the records and notes its webhook event. Rights of the caller are
//! checked before, in `auth`; how the outcome is shown is none of its business.

pub(crate) mod board;
pub(crate) mod check;
pub(crate) mod issue;
pub(crate) mod pull;
pub(crate) mod push;
