//! Reads the blobs of a difference, each once, up to a bound.
//!
//! This module does not know what the blobs mean.

use std::collections::{BTreeSet, HashMap};

use crate::call::Git;
use crate::diff::{Change, Entry, EntryKind};
use crate::error::Error;
use crate::object::ObjectId;
use crate::run_repo::RunRepo;

/// A blob above this is only measured.
const LARGEST_READ: u64 = 1 << 20;

/// Together no more than this is read.
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
        let sides = changes
            .iter()
            .flat_map(|change| [&change.old, &change.new])
            .flatten();
        let is_blob = |entry: &&Entry| entry.kind != EntryKind::Gitlink;
        let wanted: BTreeSet<ObjectId> = sides.filter(is_blob).map(|entry| entry.id.clone()).collect();
        let mut blobs = Self::default();
        blobs.measure(git, repo, &wanted).await?;
        let mut total = 0;
        let small: Vec<&ObjectId> = wanted
            .iter()
            .filter(|id| {
                let size = blobs.sizes.get(*id).copied().unwrap_or(u64::MAX);
                let fits = size <= LARGEST_READ && total + size <= TOTAL_READ;
                total += if fits { size } else { 0 };
                fits
            })
            .collect();
        let answer = repo
            .call(git, "cat-file")
            .arg("--batch")
            .input(lines(small.iter().copied()))
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

    async fn measure(&mut self, git: &Git, repo: &RunRepo, wanted: &BTreeSet<ObjectId>) -> Result<(), Error> {
        let check = repo
            .call(git, "cat-file")
            .arg("--batch-check=%(objectname) %(objecttype) %(objectsize)");
        let answer = check.input(lines(wanted.iter())).text().await?;
        for line in answer.lines() {
            let parts: Vec<&str> = line.split(' ').collect();
            let size = match parts[..] {
                [id, "blob", size] => ObjectId::parse(id).ok().zip(size.parse().ok()),
                _ => None,
            };
            let (id, size) = size.ok_or_else(|| unexpected(line))?;
            self.sizes.insert(id, size);
        }
        Ok(())
    }
}

fn lines<'a>(ids: impl Iterator<Item = &'a ObjectId>) -> String {
    ids.fold(String::new(), |list, id| list + id.as_str() + "\n")
}

/// Takes `id type size LF content LF` records apart.
fn split(mut answer: &[u8]) -> Result<HashMap<ObjectId, Vec<u8>>, Error> {
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
