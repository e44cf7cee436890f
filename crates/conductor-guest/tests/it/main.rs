//! The guest against a hostile sandbox, with real processes and real files.
