//! The steps of a snapshot, in a room that is already prepared: find what git must not enter, add, write, pack.
//!
//! This module does not know whether the room is a sandbox.

use super::nested;
use super::room::{Room, zero_terminated};
use super::{Request, Snapshot};
use crate::error::Error;

/// Takes all steps.
pub(super) async fn take(room: Box<dyn Room>, request: &Request) -> Result<Snapshot, Error> {
    let fail = |detail: String| Error::SnapshotFailed {
        workdir: request.workdir.clone(),
        detail,
    };
    let read = room
        .git("read-tree", &[request.parent.as_str()], Vec::new())
        .await?;
    if !read.status.success() {
        return Err(read.into_error("read-tree"));
    }
    let apart = nested::find(&*room, request).await?;
    let add = ["-A", "--pathspec-from-file=-", "--pathspec-file-nul"];
    let added = room.git("add", &add, apart.pathspecs()).await?;
    if !added.status.success() || has_complaint(&added.stderr) {
        return Err(if added.is_out_of_space() {
            added.into_error("add")
        } else {
            fail(added.stderr)
        });
    }
    if !apart.files.is_empty() {
        let update = ["--add", "--replace", "-z", "--stdin"];
        let updated = room
            .git("update-index", &update, zero_terminated(&apart.files))
            .await?;
        if !updated.status.success() || has_complaint(&updated.stderr) {
            return Err(fail(updated.stderr));
        }
    }
    let written = room.git("write-tree", &[], Vec::new()).await?;
    if !written.status.success() {
        return Err(written.into_error("write-tree"));
    }
    let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
    let wanted = format!("{tree}\n^{}\n", request.parent);
    let pack = ["--quiet", "--revs", "--local", "--stdout"];
    room.pack(tree, &pack, wanted.into_bytes()).await
}

/// Tells whether git said that something was left out.
///
/// A directory that it cannot read is skipped with a warning only, and the exit status of a success; for us that
/// would be lost work. So every word counts, but for those about settings that are not followed.
fn has_complaint(stderr: &str) -> bool {
    stderr.lines().any(|line| {
        let unfollowed = line.starts_with("warning: unable to access '") && line.ends_with("symbolic links");
        let misspelt = line.contains(" is not a valid attribute name: ")
            || line.contains("Negative patterns are ignored");
        !unfollowed && !misspelt && !line.trim().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::has_complaint;

    /// BEY-8.
    #[test]
    fn a_warning_about_something_left_out_is_a_complaint() {
        for (said, expected) in [
            ("", false),
            (
                "warning: unable to access '.gitignore': Too many levels of symbolic links\n",
                false,
            ),
            ("a b is not a valid attribute name: .gitattributes:1\n", false),
            (
                "warning: could not open directory 'x/': Permission denied\n",
                true,
            ),
            (
                "warning: could not open directory 'a\nwarning: unable to access 'x': symbolic links",
                true,
            ),
            ("error: open(\"x\"): Permission denied\n", true),
            ("something new\n", true),
        ] {
            assert_eq!(has_complaint(said), expected, "{said:?}");
        }
    }
}
