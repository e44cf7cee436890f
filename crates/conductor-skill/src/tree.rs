//! What a skill consists of: files with their content and whether they may be executed, under one digest.
//!
//! Modes beyond the executable bit, owners, times and empty directories do not count, so that one skill has one digest
//! on every system. A source is read strictly; what lies in a target is listed as it is. This module does not know
//! where a tree is put.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;
use conductor_port::target::FileFault;
use sha2::{Digest as _, Sha256};

use crate::platform;

/// The file that marks a copy as Conductor's; it belongs to no skill.
pub const MARKER: &str = ".conductor-skill";

/// A skill with more files is refused.
pub const MOST_FILES: usize = 10_000;
/// A skill with more bytes is refused.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;
const DEEPEST: usize = 32;

/// Why a directory cannot be read as a skill's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("{attempt} {}", path.display())]
    Io {
        /// What was attempted.
        attempt: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in it cannot be part of a skill.
    #[error("{} cannot be part of a skill: {why}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
}

/// What is known of one thing in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A file.
    File {
        /// Whether it may be executed.
        executable: bool,
        /// The hash of its content.
        sha256: [u8; 32],
    },
    /// Something that no skill holds: a link, a device, a name that is no text.
    Other,
}

/// Everything that lies in a directory, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing(pub(crate) BTreeMap<String, Mark>);

/// The files of a skill, with their content.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: BTreeMap<String, File>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its content.
    pub content: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Listing {
    /// Lists what lies in a directory, following nothing.
    pub fn of(directory: &Path) -> Result<Self, Error> {
        let mut listing = BTreeMap::new();
        walk(directory, "", 0, &[], &mut |path, at, kind| {
            if path == MARKER {
                return Ok(());
            }
            let mark = match kind {
                _ if path.contains('\u{fffd}') => Mark::Other,
                Kind::File => {
                    let File { content, executable } =
                        open(at)?.read().map_err(|source| io_error(at, source))?;
                    Mark::File {
                        executable,
                        sha256: Sha256::digest(&content).into(),
                    }
                }
                Kind::Link | Kind::Other => Mark::Other,
            };
            listing.insert(path, mark);
            Ok(())
        })?;
        Ok(Self(listing))
    }

    /// The one digest of it all.
    pub fn digest(&self) -> Digest {
        let mut text = String::new();
        for (path, mark) in &self.0 {
            match mark {
                Mark::File { executable, sha256 } => {
                    let bit = if *executable { 'x' } else { '-' };
                    text.push_str(&format!("{bit} {} {path}\n", hex::encode(sha256)));
                }
                Mark::Other => text.push_str(&format!("? {path}\n")),
            }
        }
        Digest::of(text.as_bytes())
    }

    /// Says file by file how `found` differs from this.
    pub fn faults(&self, found: &Self) -> Vec<FileFault> {
        let fault = |path: &String, why: &str| FileFault {
            path: path.clone(),
            why: why.to_owned(),
        };
        let mut faults = Vec::new();
        for (path, mark) in &self.0 {
            match found.0.get(path) {
                None => faults.push(fault(path, "is missing")),
                Some(there) if there == mark => {}
                Some(Mark::Other) => faults.push(fault(path, "is not a file")),
                Some(Mark::File { sha256, .. }) => {
                    let is_content = matches!(mark, Mark::File { sha256: wanted, .. } if wanted == sha256);
                    let why = if is_content {
                        "has another mode"
                    } else {
                        "has other content"
                    };
                    faults.push(fault(path, why));
                }
            }
        }
        faults.extend(
            found
                .0
                .keys()
                .filter(|path| !self.0.contains_key(*path))
                .map(|path| fault(path, "should not be there")),
        );
        faults
    }
}

impl Tree {
    /// Reads a skill. A link counts as the file that it leads to, and may not lead out.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let top = fs::canonicalize(directory).map_err(|source| io_error(directory, source))?;
        let mut files = BTreeMap::new();
        let mut bytes = 0;
        walk(directory, "", 0, &[".git"], &mut |path, at, kind| {
            let refuse = |why| {
                Err(Error::Refused {
                    path: at.to_owned(),
                    why,
                })
            };
            if path
                .chars()
                .any(|c| c.is_control() || matches!(c, '\\' | '\u{fffd}'))
            {
                return refuse("its name holds a backslash, a control character or no text");
            }
            if path == MARKER {
                return Ok(());
            }
            let from = match kind {
                Kind::File => at.to_owned(),
                Kind::Other => return refuse("it is neither a file nor a directory"),
                Kind::Link => match fs::canonicalize(at) {
                    Ok(to) if !to.starts_with(&top) => {
                        return refuse("it is a link that leads out of the skill");
                    }
                    Ok(to) if to.is_file() => to,
                    Ok(_) => return refuse("it is a link to something else than a file"),
                    Err(_) => return refuse("it is a link to nowhere"),
                },
            };
            let opened = open(&from)?;
            bytes += opened.metadata.len();
            if files.len() >= MOST_FILES || bytes > MOST_BYTES {
                return refuse("the skill has more than 10 000 files or 256 MiB");
            }
            files.insert(path, opened.read().map_err(|source| io_error(at, source))?);
            Ok(())
        })?;
        Ok(Self { files })
    }

    /// Its files by path.
    pub fn files(&self) -> &BTreeMap<String, File> {
        &self.files
    }

    /// The same with only the files that `keep` wants, none of them executable.
    pub fn without_programs(mut self, keep: impl Fn(&str, &File) -> bool) -> Self {
        self.files.retain(|path, file| keep(path, file));
        for file in self.files.values_mut() {
            file.executable = false;
        }
        self
    }

    /// What a directory with exactly these files lists.
    pub fn listing(&self) -> Listing {
        let mark = |file: &File| Mark::File {
            executable: file.executable,
            sha256: Sha256::digest(&file.content).into(),
        };
        Listing(
            self.files
                .iter()
                .map(|(path, file)| (path.clone(), mark(file)))
                .collect(),
        )
    }

    /// Writes the files into a new directory.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        fs::create_dir(directory).map_err(|source| write_error(directory, source))?;
        for (path, File { content, executable }) in &self.files {
            let at = directory.join(path);
            if path.contains('/') {
                let parent = at.parent().unwrap_or(directory);
                fs::create_dir_all(parent).map_err(|source| write_error(parent, source))?;
            }
            fs::write(&at, content).map_err(|source| write_error(&at, source))?;
            if *executable {
                platform::make_executable(&at).map_err(|source| write_error(&at, source))?;
            }
        }
        Ok(())
    }
}

enum Kind {
    File,
    Link,
    Other,
}

/// Visits everything below a directory but directories themselves and what is to be skipped.
fn walk(
    directory: &Path,
    prefix: &str,
    depth: usize,
    skipped: &[&str],
    visit: &mut dyn FnMut(String, &Path, Kind) -> Result<(), Error>,
) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::Refused {
            path: directory.to_owned(),
            why: "it is nested too deeply",
        });
    }
    for entry in fs::read_dir(directory).map_err(|source| io_error(directory, source))? {
        let entry = entry.map_err(|source| io_error(directory, source))?;
        let name = entry.file_name();
        if skipped.iter().any(|skipped| name == *skipped) {
            continue;
        }
        let at = entry.path();
        // A name that is no text is still seen, and refused or counted as strange by whoever visits.
        let path = format!("{prefix}{}", name.to_string_lossy());
        let kind = entry.file_type().map_err(|source| io_error(&at, source))?;
        if kind.is_dir() {
            walk(&at, &format!("{path}/"), depth + 1, skipped, visit)?;
        } else if kind.is_file() {
            visit(path, &at, Kind::File)?;
        } else if kind.is_symlink() {
            visit(path, &at, Kind::Link)?;
        } else {
            visit(path, &at, Kind::Other)?;
        }
    }
    Ok(())
}

/// A file that is looked up once: what is known of it is known of what is read.
struct Opened {
    file: fs::File,
    metadata: fs::Metadata,
}

fn open(at: &Path) -> Result<Opened, Error> {
    let file = fs::File::open(at).map_err(|source| io_error(at, source))?;
    let metadata = file.metadata().map_err(|source| io_error(at, source))?;
    Ok(Opened { file, metadata })
}

impl Opened {
    fn read(mut self) -> io::Result<File> {
        let length = usize::try_from(self.metadata.len()).unwrap_or_default();
        // One byte more than its length tells the end in the same turn.
        let mut content = Vec::with_capacity(length + 1);
        self.file.read_to_end(&mut content)?;
        Ok(File {
            content,
            executable: platform::is_executable(&self.metadata),
        })
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        attempt: "reading",
        path: path.to_owned(),
        source,
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        attempt: "writing",
        path: path.to_owned(),
        source,
    }
}
