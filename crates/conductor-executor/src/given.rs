//! Lays files that a sandbox is given where it can be shown them, read-only: into its own record, so that they go with it.
//!
//! Nothing is believed of a path: it is plain parts, and every folder and file is made new, so no link is ever followed.
//! This module does not know what the files are for.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use conductor_domain::fault::Fault;
use conductor_port::executor::Given;

/// What was laid, and where it stands inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Laid {
    pub(crate) source: PathBuf,
    pub(crate) inside: PathBuf,
}

/// Lays everything that a sandbox is given into its record.
pub(crate) fn lay(given: &[Given], home: &Path) -> Result<Vec<Laid>, Fault> {
    let mut laid = Vec::with_capacity(given.len());
    for (number, folder) in given.iter().enumerate() {
        if !folder.inside.is_absolute() || !is_plain(folder.inside.components().skip(1)) {
            return Err(refused(&folder.inside));
        }
        let source = home.join(format!("given-{number}"));
        make(&source)?;
        for file in &folder.files {
            let path = Path::new(&file.path);
            if file.path.is_empty() || file.path.contains('\0') || !is_plain(path.components()) {
                return Err(refused(path));
            }
            let to = source.join(path);
            for above in parents(&source, path) {
                make(&above)?;
            }
            let mode = Permissions::from_mode(if file.executable { 0o555 } else { 0o444 });
            // The mode is set afterwards, because this process's umask may have taken from it.
            let written = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&to)
                .and_then(|mut opened| opened.write_all(&file.content))
                .and_then(|()| fs::set_permissions(&to, mode));
            written.map_err(|error| attempt(&to, &error))?;
        }
        laid.push(Laid {
            source,
            inside: folder.inside.clone(),
        });
    }
    Ok(laid)
}

fn is_plain<'a>(mut parts: impl Iterator<Item = Component<'a>>) -> bool {
    parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The folders between, from the top.
fn parents(source: &Path, path: &Path) -> Vec<PathBuf> {
    let mut above: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty())
        .map(|above| source.join(above))
        .collect();
    above.reverse();
    above
}

fn make(folder: &Path) -> Result<(), Fault> {
    let made = match fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && is_folder(folder) => return Ok(()),
        made => made,
    };
    made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755)))
        .map_err(|error| attempt(folder, &error))
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn refused(path: &Path) -> Fault {
    Fault::permanent(format!(
        "`{}` cannot be given to a sandbox: it is no plain path",
        path.display().to_string().escape_debug()
    ))
}

fn attempt(path: &Path, error: &std::io::Error) -> Fault {
    Fault::transient(format!("laying {} for a sandbox: {error}", path.display()))
}
