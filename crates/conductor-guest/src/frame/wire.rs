//! Writes and reads the values inside a payload: fixed numbers, and bytes behind their length.
//!
//! Reading never trusts a length or a count: a list is pushed item by item, and each item takes at least one byte of
//! what is really there. This module does not know what the values mean.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The kind is not one of this direction.
    #[error("the kind is unknown")]
    Kind,
    /// It ends too early.
    #[error("it ends too early")]
    Short,
    /// It goes on after its end.
    #[error("{0} bytes are left over")]
    Surplus(usize),
    /// A value has an unknown variant.
    #[error("variant {0} is unknown")]
    Variant(u8),
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A list is too long.
    #[error("a list is longer than {0}")]
    List(u32),
}

/// Appends values.
#[derive(Debug)]
pub struct Put<'a>(&'a mut Vec<u8>);

impl<'a> Put<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes bytes to the end of the payload, without a length.
    pub(crate) fn rest(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes bytes behind their length. What does not fit a length fails the frame's own limit anyway.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.rest(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn word(&mut self, word: &OsStr) {
        self.bytes(word.as_bytes());
    }

    pub(crate) fn path(&mut self, path: &Path) {
        self.word(path.as_os_str());
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
        for item in items {
            each(self, item);
        }
    }
}

/// Takes values off the front.
#[derive(Debug)]
pub struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Malformed::Variant(other)),
        }
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes everything that is left.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed::Short)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?).map_err(|_| Malformed::Text)
    }

    pub(crate) fn word(&mut self) -> Result<OsString, Malformed> {
        self.bytes().map(OsString::from_vec)
    }

    pub(crate) fn path(&mut self) -> Result<PathBuf, Malformed> {
        self.word().map(PathBuf::from)
    }

    pub(crate) fn list<T>(
        &mut self,
        longest: u32,
        mut each: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()?;
        if count > longest {
            return Err(Malformed::List(longest));
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(each(self)?);
        }
        Ok(items)
    }

    /// Makes sure that nothing is left over.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(Malformed::Surplus(left)),
        }
    }
}
