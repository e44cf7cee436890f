//! Reads the blobs of a difference, each once, up to a bound that counts every path which holds one.
//!
//! This module does not know what the blobs mean.

use std::collections::{BTreeMap, HashMap};

use crate::call::{Call, Git};
use crate::diff::{Change, Entry, EntryKind};
use crate::error::Error;
use crate::object::ObjectId;
use crate::run_repo::RunRepo;

/// A blob above this is only measured.
const LARGEST_READ: u64 = 1 << 20;

/// Together no more than this is read. A blob counts as often as it is named, because whoever holds, scans or shows a
/// difference does so for every path: one file under many names is not cheap to them.
const TOTAL_READ: u64 = 48 << 20;

/// How much of a blob decides whether it is binary; git uses the same.
const SNIFFED: usize = 8000;

/// The blobs of a difference.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    sizes: HashMap<ObjectId, u64>,
    contents: HashMap<ObjectId, Vec<u8>>,
}

impl Blobs {
    /// Measures every blob of the changes and reads those that are small enough.
    pub(crate) async fn read(git: &Git, repo: &RunRepo, changes: &[Change]) -> Result<Self, Error> {
        let wanted = named(changes);
        let mut blobs = Self::measure(repo.call(git, "cat-file"), &wanted).await?;
        let small = blobs.small(&wanted);
        let answer = repo
            .call(git, "cat-file")
            .arg("--batch")
            .input(lines(small.into_iter()))
            .bytes()
            .await?;
        blobs.contents = split(&answer)?;
        Ok(blobs)
    }

    /// The length of a blob; `None` when it was not part of the difference.
    pub(crate) fn size(&self, id: &ObjectId) -> Option<u64> {
        self.sizes.get(id).copied()
    }

    /// The content of a blob, if it was small enough to be read.
    pub(crate) fn content(&self, id: &ObjectId) -> Option<&[u8]> {
        self.contents.get(id).map(Vec::as_slice)
    }

    /// Tells whether a blob is better not shown as text.
    pub(crate) fn is_binary(&self, id: &ObjectId) -> bool {
        match self.content(id) {
            Some(content) => content.iter().take(SNIFFED).any(|b| *b == 0),
            None => self.sizes.contains_key(id),
        }
    }

    /// Chooses what is read: a blob for all the paths that name it, or for none of them.
    fn small<'a>(&self, wanted: &'a BTreeMap<ObjectId, u64>) -> Vec<&'a ObjectId> {
        let mut left = TOTAL_READ;
        let fits = |(id, uses): (&'a ObjectId, &u64)| {
            let size = self.size(id).filter(|size| *size <= LARGEST_READ)?;
            left = left.checked_sub(size.checked_mul(*uses)?)?;
            Some(id)
        };
        wanted.iter().filter_map(fits).collect()
    }

    /// Measures these blobs and reads none, with a `cat-file` that was begun where they are.
    pub(crate) async fn measure(cat_file: Call<'_>, wanted: &BTreeMap<ObjectId, u64>) -> Result<Self, Error> {
        let check = cat_file.arg("--batch-check=%(objectname) %(objecttype) %(objectsize)");
        let answer = check.input(lines(wanted.keys())).text().await?;
        let mut blobs = Self::default();
        for line in answer.lines() {
            let parts: Vec<&str> = line.split(' ').collect();
            let size = match parts[..] {
                [id, "blob", size] => ObjectId::parse(id).ok().zip(size.parse().ok()),
                _ => None,
            };
            let (id, size) = size.ok_or_else(|| unexpected(line))?;
            blobs.sizes.insert(id, size);
        }
        Ok(blobs)
    }
}

/// Lists the blobs that the changes name, with how often they do.
pub(crate) fn named(changes: &[Change]) -> BTreeMap<ObjectId, u64> {
    let sides = changes.iter().flat_map(|change| [&change.old, &change.new]);
    let is_blob = |entry: &&Entry| entry.kind != EntryKind::Gitlink;
    let mut named = BTreeMap::new();
    for entry in sides.flatten().filter(is_blob) {
        *named.entry(entry.id.clone()).or_default() += 1;
    }
    named
}

fn lines<'a>(ids: impl Iterator<Item = &'a ObjectId>) -> String {
    ids.fold(String::new(), |list, id| list + id.as_str() + "\n")
}

/// Takes `id type size LF content LF` records apart.
pub(crate) fn split(mut answer: &[u8]) -> Result<HashMap<ObjectId, Vec<u8>>, Error> {
    let mut contents = HashMap::new();
    while let Some(end) = answer.iter().position(|b| *b == b'\n') {
        let header = String::from_utf8_lossy(&answer[..end]).into_owned();
        let mut parts = header.split(' ');
        let (id, _kind, size) = (parts.next(), parts.next(), parts.next());
        let id = ObjectId::parse(id.unwrap_or_default())?;
        let size: usize = size
            .and_then(|size| size.parse().ok())
            .ok_or_else(|| unexpected(&header))?;
        let content = answer
            .get(end + 1..end + 1 + size)
            .ok_or_else(|| unexpected(&header))?;
        contents.insert(id, content.to_vec());
        answer = answer.get(end + 2 + size..).unwrap_or_default();
    }
    Ok(contents)
}

fn unexpected(line: &str) -> Error {
    Error::UnexpectedOutput {
        verb: "cat-file",
        detail: line.chars().take(120).collect(),
    }
}
