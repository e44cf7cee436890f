//! The store's tests: the contract on every implementation, then what only a file on a disk can meet.

mod contract;
