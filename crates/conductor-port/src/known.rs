//! What faults say that a person can do something about.
//!
//! A fault has words and no cause. Whoever makes one of these says its words whole, and whoever looks for a hint looks for
//! nothing shorter: part of them may stand in a repository's name, or in what the forge answers. This module does not know the
//! hints.

/// The disk below a database is full.
pub const NO_ROOM: &str = "no room is left for the database";
/// The disk below repositories and working directories is full.
pub const DISK_FULL: &str = "no room is left on the disk";
/// Somebody else keeps a database from being written.
pub const LOCKED: &str = "the database is locked by another process";
/// A database server does not answer.
pub const NO_SERVER: &str = "the database server cannot be reached";
/// A database server takes no more connections.
pub const NO_CONNECTION: &str = "no connection to the database is free";
/// What a database holds cannot be read, or is not what was written.
pub const DAMAGED: &str = "the database is damaged";
/// A file is something else than a database.
pub const NOT_A_DATABASE: &str = "the file is not a database";
/// A record names bytes that are gone.
pub const NOT_KEPT: &str = "is referred to and not kept";
/// A run's stream ends before what was seen of it.
pub const RUN_DAMAGED: &str = "the run's stream is damaged";
/// What is kept of where one run stands is none.
pub const RUN_UNREADABLE: &str = "cannot read where the run stands";
/// The instance's stream ends before what was seen of it.
pub const INSTANCE_DAMAGED: &str = "the instance's stream is damaged";
/// What is kept of where the instance stands is none.
pub const INSTANCE_UNREADABLE: &str = "cannot read where the instance stands";
