//! Assembles the table into a classic BPF program over `struct seccomp_data`.
//!
//! One block per rule, in the table's order, each with its own return, so that no jump is long. The kernel remembers
//! which calls are allowed whatever their arguments, so the length of the list costs the common ones nothing.
//! This module does not know why a call is refused.

use super::table::{NEWEST, Rule, Test};

/// One `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) if_true: u8,
    pub(super) if_false: u8,
    pub(super) operand: u32,
}

/// Loads a word of `struct seccomp_data`.
pub(super) const LOAD: u16 = 0x20;
/// Jumps if the accumulator equals the operand.
pub(super) const JUMP_EQUAL: u16 = 0x15;
/// Jumps if it is greater.
pub(super) const JUMP_GREATER: u16 = 0x25;
/// Keeps the operand's bits.
pub(super) const AND: u16 = 0x54;
/// Returns the operand.
pub(super) const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const KILL: u32 = 0x8000_0000;
pub(super) const ERRNO: u32 = 0x0005_0000;

/// Offsets in `struct seccomp_data`.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE: u32 = 0xC000_00B7;

/// Set in the numbers of x32 calls, which share the architecture's name.
pub(super) const X32: u32 = 0x4000_0000;

/// Writes the whole program.
pub(super) fn program(table: &[Rule]) -> Vec<Instruction> {
    let mut out = vec![
        step(LOAD, ARCHITECTURE),
        jump(JUMP_EQUAL, NATIVE, 1, 0),
        step(RETURN, KILL),
        step(LOAD, NUMBER),
        jump(JUMP_GREATER, X32 - 1, 0, 1),
        step(RETURN, KILL),
        jump(JUMP_GREATER, NEWEST, 0, 1),
        step(RETURN, ERRNO | u32::from(ENOSYS)),
    ];
    for rule in table {
        let body = body(rule);
        let past = u8::try_from(body.len()).expect("a rule has at most six tests of three instructions");
        out.push(jump(JUMP_EQUAL, rule.number, 0, past));
        out.extend(body);
    }
    out.push(step(RETURN, ALLOW));
    out
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "38 fits")]
const ENOSYS: u16 = libc::ENOSYS as u16;

/// Tests the arguments; whichever test fails leads to the end, where the call's number is loaded again.
fn body(rule: &Rule) -> Vec<Instruction> {
    let mut body = Vec::new();
    let lengths: usize = rule.when.iter().map(|test| length(*test)).sum();
    for test in rule.when {
        let (argument, code, operand, is_inverted) = match *test {
            Test::IsNot(argument, value) => (argument, JUMP_EQUAL, value, true),
            Test::Above(argument, value) => (argument, JUMP_GREATER, value, false),
            Test::Is(argument, value) | Test::Bits { argument, value, .. } => {
                (argument, JUMP_EQUAL, value, false)
            }
        };
        body.push(step(LOAD, ARGUMENTS + 8 * u32::from(argument) + LOW_HALF));
        if let Test::Bits { mask, .. } = *test {
            body.push(step(AND, mask));
        }
        // From behind this jump over what is left of the tests, and over the return.
        let end =
            u8::try_from(lengths - body.len()).expect("a rule has at most six tests of three instructions");
        body.push(if is_inverted {
            jump(code, operand, end, 0)
        } else {
            jump(code, operand, 0, end)
        });
    }
    body.push(step(RETURN, ERRNO | u32::from(rule.errno)));
    if !rule.when.is_empty() {
        body.push(step(LOAD, NUMBER));
    }
    body
}

/// Where the low half of a 64-bit argument is.
const LOW_HALF: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };

fn length(test: Test) -> usize {
    match test {
        Test::Is(..) | Test::IsNot(..) | Test::Above(..) => 2,
        Test::Bits { .. } => 3,
    }
}

fn step(code: u16, operand: u32) -> Instruction {
    jump(code, operand, 0, 0)
}

fn jump(code: u16, operand: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        operand,
    }
}
