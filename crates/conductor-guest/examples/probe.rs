//! Plays a hostile program in a sandbox: makes one system call, as numbers say, and prints the error number, 0 for none.
//!
//! `probe NUMBER [ARGUMENT]…` calls natively; `probe i386` asks for the process id as a 32-bit program would.
#![allow(
    unsafe_code,
    clippy::print_stdout,
    reason = "raw system calls are what it is for, and whoever runs it reads its output"
)]

use std::error::Error;
use std::ffi::c_long;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let errno = if words == ["i386"] {
        foreign()
    } else {
        native(&words)?
    };
    println!("{errno}");
    Ok(())
}

fn native(words: &[String]) -> Result<i32, Box<dyn Error>> {
    let numbers: Vec<u64> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let at = |place: usize| numbers.get(place).copied().unwrap_or(0).cast_signed() as c_long;
    // SAFETY: the tests choose calls that fail, or whose success harms nobody but this process.
    let result = unsafe { libc::syscall(at(0), at(1), at(2), at(3), at(4), at(5), at(6)) };
    Ok(if result == -1 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(-1)
    } else {
        0
    })
}

#[cfg(target_arch = "x86_64")]
fn foreign() -> i32 {
    const GETPID: i32 = 20;
    let result: i32;
    // SAFETY: asks for a number and touches no memory.
    unsafe { std::arch::asm!("int 0x80", inlateout("eax") GETPID => result) };
    result.min(0)
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign() -> i32 {
    -1
}
