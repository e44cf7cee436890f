//! The commands, one file each: its arguments, whose comments are the manual, and what it does.
//!
//! This module does not know how a command is found.

pub(crate) mod serve;
pub(crate) mod project;
pub(crate) mod repo;
pub(crate) mod egress;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod approvals;
pub(crate) mod bulk;
pub(crate) mod audit;
pub(crate) mod metrics;
pub(crate) mod projections;
pub(crate) mod kill_switch;
pub(crate) mod open;
pub(crate) mod operator;
pub(crate) mod token;
pub(crate) mod skills;
pub(crate) mod demo;
pub(crate) mod exec;
pub(crate) mod tools;
pub(crate) mod doctor;
pub(crate) mod completions;
