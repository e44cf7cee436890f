//! The HTTP door: pages for people, a JSON API for the command line, webhooks from the forge, and live streams.
//!
//! A handler reads through a [`Reader`] and submits through the `Inbox`; it decides nothing and changes nothing by
//! itself. Every request carries the right `Host`, every one but a signed webhook the bearer token. The words on
//! the wire are in [`api`] and serve both ends.
//!
//! This crate does not know the engine, a database, or git.

pub mod api;
pub mod visible;
pub mod words;
mod error;
mod history;
mod change;
mod detail;
mod reader;
mod search;
mod metrics;
mod backstage;
mod rules;
mod risk;
mod password;
mod attempts;
mod door;
mod actor;
mod guard;
mod patience;
mod extract;
mod start;
mod once;
mod operation;
mod openapi;
mod handle;
mod render;
mod page;
mod stream;
mod webhook;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod access;
#[cfg(test)]
mod attack;

pub use backstage::{Backstage, Change, Talk};
pub use door::{Behind, Door, RunDefaults, Settings, Token, router};
pub use error::{Error, StartRefusal};
pub use metrics::MetricsQuery;
pub use openapi::document as openapi_document;
pub use operation::{OPERATIONS, Operation};
pub use reader::{CallsWanted, Reader};
pub use rules::{PolicyLock, Rules};
pub use search::{Format, RecordQuery, Sight};
pub use webhook::{Delivery, Hint, ReadDelivery, Rejected};
