//! Reads the first message of a TLS client, over however many records it comes, for the one name in it (S-39).
//!
//! A pure function of the bytes that came so far: it wants more, gives the name, or says why the bytes may not pass.
//! What follows the message is not looked at. This module does not know which name is right.

use conductor_domain::egress::{EgressReason, HostName};

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The most bytes that are read in search of the message.
    pub(super) read: usize,
    /// The longest message.
    hello: usize,
}

/// Room enough: a hello with the largest key shares in use has about 2 KiB.
pub(super) const SIZES: Sizes = Sizes {
    read: 32 * 1024,
    hello: 16 * 1024,
};
/// What is left when a test leaves the sizes out.
pub(super) const ANY_SIZE: Sizes = Sizes {
    read: usize::MAX,
    hello: usize::MAX,
};

const HANDSHAKE_RECORD: u8 = 22;
const RECORD_HEAD: usize = 5;
const MAX_RECORD: usize = 16 * 1024;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Encrypted hello in its final and earlier numbers, and the encrypted name before it.
const ENCRYPTED: &[u16] = &[0xfe0d, 0xfe0c, 0xfe0b, 0xfe0a, 0xfe09, 0xfe08, 0xfd00, 0xffce];

/// Looks for the server name in what came so far; `None` wants more.
pub(super) fn server_name(bytes: &[u8], sizes: Sizes) -> Result<Option<HostName>, EgressReason> {
    let Some(hello) = reassemble(bytes, sizes.hello)? else {
        return Ok(None);
    };
    name_in(&hello).ok_or(EgressReason::NotTls)?.map(Some)
}

/// Joins the records of the message; `None` wants more.
fn reassemble(bytes: &[u8], longest: usize) -> Result<Option<Vec<u8>>, EgressReason> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = hello_length(&message, longest)? {
            if message.len() == length {
                return Ok(Some(message.split_off(4)));
            }
            // Nothing may stand behind the hello in its own record: it has to be answered first.
            if message.len() > length {
                return Err(EgressReason::NotTls);
            }
        }
        let Some(record) = first_record(rest)? else {
            return Ok(None);
        };
        message.extend_from_slice(record);
        rest = &rest[RECORD_HEAD + record.len()..];
    }
}

/// Reads the length of the whole message from its head, as soon as that is there.
fn hello_length(message: &[u8], longest: usize) -> Result<Option<usize>, EgressReason> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(EgressReason::NotTls);
    }
    let [_, high, middle, low, ..] = message else {
        return Ok(None);
    };
    let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
    if length > longest {
        return Err(EgressReason::LimitReached);
    }
    Ok(Some(4 + length))
}

/// Gives what the first record carries, if it is whole; refuses what can never become one.
fn first_record(bytes: &[u8]) -> Result<Option<&[u8]>, EgressReason> {
    let starts_well = |index: usize, expected: u8| bytes.get(index).is_none_or(|byte| *byte == expected);
    if !starts_well(0, HANDSHAKE_RECORD) || !starts_well(1, 3) {
        return Err(EgressReason::NotTls);
    }
    let [_, _, _, high, low, rest @ ..] = bytes else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length == 0 || length > MAX_RECORD {
        return Err(EgressReason::NotTls);
    }
    Ok(rest.get(..length))
}

/// Walks through the whole message: outer `None` is malformed, inner refusals are about the name.
fn name_in(hello: &[u8]) -> Option<Result<HostName, EgressReason>> {
    let mut hello = Take(hello);
    hello.bytes(2 + 32)?; // version and random
    hello.vector8()?; // session
    hello.vector16()?; // cipher suites
    hello.vector8()?; // compression
    if hello.0.is_empty() {
        return Some(Err(EgressReason::OtherServerName));
    }
    let mut extensions = Take(hello.vector16()?);
    if !hello.0.is_empty() {
        return None;
    }
    let mut names = Vec::new();
    let mut hidden = false;
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let body = extensions.vector16()?;
        if kind == SERVER_NAME {
            names.push(only_host_name(body)?);
        }
        hidden |= ENCRYPTED.contains(&kind);
    }
    if hidden {
        return Some(Err(EgressReason::HiddenServerName));
    }
    let [name] = names.as_slice() else {
        return Some(Err(EgressReason::OtherServerName));
    };
    let name = std::str::from_utf8(name)
        .ok()
        .and_then(|name| HostName::parse(name).ok());
    Some(name.ok_or(EgressReason::OtherServerName))
}

/// Reads a list of exactly one name of the only kind there is.
fn only_host_name(extension: &[u8]) -> Option<&[u8]> {
    let mut extension = Take(extension);
    let mut list = Take(extension.vector16()?);
    let [kind] = list.bytes(1)? else { return None };
    let name = list.vector16()?;
    (extension.0.is_empty() && list.0.is_empty() && *kind == HOST_NAME).then_some(name)
}

/// The bytes that are left.
struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let [high, low] = self.bytes(2)? else { return None };
        Some(u16::from_be_bytes([*high, *low]))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let [length] = self.bytes(1)? else { return None };
        self.bytes(usize::from(*length))
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.bytes(usize::from(length))
    }
}
