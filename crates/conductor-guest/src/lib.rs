//! What host and guest agree on: frames, their rules, the system call list, and files beneath one directory.
//!
//! The program of the same name is PID 1 of every sandbox; it runs commands and touches files for the host, which
//! speaks to it in frames over two pipes. Everything in the sandbox but that program is hostile, and the host treats
//! even the program's frames as hostile (S-15).
//! This crate knows no other crate of the workspace, no async runtime, and not what the commands are for.

mod switch;
pub mod frame;
pub mod order;
pub mod response;
pub mod calls;
pub mod file;
pub mod seccomp;
