//! Decides which system calls nothing in a sandbox may make (S-40): one table, in the two forms that sandboxes take.
//!
//! [`bpf`] is for `bwrap --seccomp FD` and for the guest itself; [`docker_profile_json`] for `--security-opt seccomp=`.
//! What is not in the table is allowed, except calls newer than the table, which do not exist. Foreign architectures
//! are killed, and on x86-64 the x32 calls with them. A profile says less than the program: it has no word for "newer",
//! and an engine ignores names that its libseccomp does not know, so in Docker the guest installs the program as well.
//! This module does not install anything.

mod table;
mod assemble;
mod profile;

pub use table::{NEWEST, Rule, TABLE, Test};

/// Writes the table as a classic BPF program: an array of `struct sock_filter` in this machine's byte order.
pub fn bpf() -> Vec<u8> {
    let mut bytes = Vec::new();
    for instruction in assemble::program(TABLE) {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.if_true, instruction.if_false]);
        bytes.extend_from_slice(&instruction.operand.to_ne_bytes());
    }
    bytes
}

/// Writes the table as a seccomp profile for Docker and Podman.
pub fn docker_profile_json() -> String {
    profile::write(TABLE)
}

#[cfg(test)]
mod tests;
