//! The `local` executor: the contract that every executor keeps, and what only a sandbox of namespaces can show.

mod contract;
mod kit;
mod leases;
mod protections;
