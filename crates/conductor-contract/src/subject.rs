//! What is examined: one store behind all its ports.
//!
//! It does not know which store.

use std::any::Any;
use std::sync::Arc;

use conductor_port::answer::Answers;
use conductor_port::blobs::{Blobs, ToolLog};
use conductor_port::duty::Duties;
use conductor_port::herald::Marks;
use conductor_port::key::Keys;
use conductor_port::lease::Leases;
use conductor_port::ledger::Ledger;
use conductor_port::search::Search;
use conductor_port::tally::Tally;
use conductor_port::views::Views;

/// A fresh, empty store. All ports lead to the same one.
#[derive(Debug)]
pub struct Subject {
    /// Its ledger.
    pub ledger: Arc<dyn Ledger>,
    /// What readers see of it.
    pub views: Arc<dyn Views>,
    /// What its records are found by.
    pub search: Arc<dyn Search>,
    /// What its runs took.
    pub tally: Arc<dyn Tally>,
    /// Its bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Its log of tool calls.
    pub tool_log: Arc<dyn ToolLog>,
    /// Its records of held resources.
    pub leases: Arc<dyn Leases>,
    /// Its duties.
    pub duties: Arc<dyn Duties>,
    /// What opens the door to people.
    pub keys: Arc<dyn Keys>,
    /// Its words under names.
    pub marks: Arc<dyn Marks>,
    /// Its answers to writes that named themselves.
    pub answers: Arc<dyn Answers>,
    /// Whatever must live as long as the store: a temporary directory, a server.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Subject {
    /// Makes a subject of a store that implements all ports.
    pub fn new<S>(store: S, guard: impl Any + Send + Sync) -> Self
    where
        S: Ledger
            + Views
            + Search
            + Tally
            + Blobs
            + ToolLog
            + Leases
            + Duties
            + Keys
            + Marks
            + Answers
            + 'static,
    {
        let store = Arc::new(store);
        Self {
            ledger: store.clone(),
            views: store.clone(),
            search: store.clone(),
            tally: store.clone(),
            blobs: store.clone(),
            tool_log: store.clone(),
            leases: store.clone(),
            duties: store.clone(),
            keys: store.clone(),
            marks: store.clone(),
            answers: store,
            guard: Box::new(guard),
        }
    }
}
