//! Skills as tar streams, which is how `docker cp` carries files in and out.
//!
//! What comes out of a container is hostile input: it is only ever listed, never unpacked. This module does not know
//! where a stream goes.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use crate::tree::{Listing, MARKER, MOST_BYTES, MOST_FILES, Mark, Tree};

/// What stands at the top of a stream that came out of a container.
#[derive(Debug)]
pub(super) enum Read {
    /// A directory.
    Directory {
        /// What it holds.
        listing: Listing,
        /// The text of its marker.
        marker: Option<String>,
    },
    /// A link, with what it points to.
    Link(String),
    /// Something else.
    Other,
}

/// Packs a tree under the directory `top`, with its marker, owned by `owner`.
pub(super) fn pack(tree: &Tree, top: &str, marker: &str, owner: (u64, u64)) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let mut directories = std::collections::BTreeSet::from([String::new()]);
    for path in tree.files().keys() {
        let parents = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
        directories.extend(parents);
    }
    for directory in directories {
        let path = if directory.is_empty() {
            format!("{top}/")
        } else {
            format!("{top}/{directory}/")
        };
        let mut header = header(EntryType::Directory, 0o755, 0, owner);
        builder.append_data(&mut header, path, io::empty())?;
    }
    for (path, file) in tree.files() {
        let mode = if file.executable { 0o755 } else { 0o644 };
        let mut header = header(EntryType::Regular, mode, file.content.len(), owner);
        builder.append_data(&mut header, format!("{top}/{path}"), file.content.as_slice())?;
    }
    let mut header = header(EntryType::Regular, 0o644, marker.len(), owner);
    builder.append_data(&mut header, format!("{top}/{MARKER}"), marker.as_bytes())?;
    builder.into_inner()
}

/// Packs one link.
pub(super) fn pack_link(name: &str, to: &str, owner: (u64, u64)) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let mut header = header(EntryType::Symlink, 0o777, 0, owner);
    builder.append_link(&mut header, name, to)?;
    builder.into_inner()
}

fn header(kind: EntryType, mode: u32, size: usize, (uid, gid): (u64, u64)) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(uid);
    header.set_gid(gid);
    // A time that is the same every time.
    header.set_mtime(1);
    header
}

/// Lists a stream; its first part is the name of what was copied.
pub(super) fn read(stream: &[u8]) -> io::Result<Read> {
    let mut listing = BTreeMap::new();
    let mut marker = None;
    let mut top = None;
    let mut bytes = 0;
    for entry in Archive::new(stream).entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes().into_owned();
        let path = String::from_utf8_lossy(&path).into_owned();
        let path = path.trim_end_matches('/');
        let kind = entry.header().entry_type();
        let Some((_, inner)) = path.split_once('/') else {
            let link = entry.link_name()?;
            let link = link.as_deref().map(Path::to_string_lossy).unwrap_or_default();
            top = Some(if kind == EntryType::Directory {
                None
            } else if kind == EntryType::Symlink {
                Some(Read::Link(link.into_owned()))
            } else {
                Some(Read::Other)
            });
            continue;
        };
        bytes += entry.size();
        if bytes > MOST_BYTES || listing.len() > MOST_FILES {
            return Err(io::Error::other("it is larger than any skill"));
        }
        if kind == EntryType::Directory {
            continue;
        }
        if kind != EntryType::Regular {
            listing.insert(inner.to_owned(), Mark::Other);
            continue;
        }
        let executable = entry.header().mode()? & 0o100 != 0;
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        if inner == MARKER {
            marker = Some(String::from_utf8_lossy(&content).into_owned());
        } else {
            let sha256 = Sha256::digest(&content).into();
            listing.insert(inner.to_owned(), Mark::File { executable, sha256 });
        }
    }
    match top {
        Some(Some(other)) => Ok(other),
        Some(None) => Ok(Read::Directory {
            listing: Listing(listing),
            marker,
        }),
        None => Err(io::Error::other("it is empty")),
    }
}
