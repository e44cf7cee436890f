//! Whatever path is named, nothing outside the directory is read, made or changed (S-46).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use conductor_guest::file::Beneath;
use conductor_guest::order::Range;

const OUTSIDE: &str = "what stands outside";
const INSIDE: &str = "what stands inside\n";

struct Place {
    /// Removed with the process, or by whoever clears the temporary directory.
    top: tempfile::TempDir,
    beneath: Beneath,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let top = tempfile::tempdir().expect("a temporary directory");
    let root = top.path().join("root");
    std::fs::create_dir_all(root.join("a/b")).expect("made");
    std::fs::write(top.path().join("secret"), OUTSIDE).expect("written");
    std::fs::write(root.join("a/b/file"), INSIDE).expect("written");
    for (to, link) in [
        ("../secret", "out"),
        ("..", "up"),
        ("a", "in"),
        ("/", "top"),
        ("loop", "loop"),
        ("/proc/self/root", "magic"),
    ] {
        symlink(to, root.join(link)).expect("linked");
    }
    let beneath = Beneath::open(&root).expect("opened");
    Place { top, beneath }
});

/// The input is a path, as bytes.
pub(crate) fn check(input: &[u8]) {
    let Place { top, beneath } = &*PLACE;
    let path: &Path = OsStr::from_bytes(input).as_ref();
    if let Ok(seen) = beneath.view(path, Range::Whole) {
        assert_eq!(seen, INSIDE.as_bytes(), "something else was read");
    }
    let _ = beneath.replace(path, b"inside", b"inside");
    let _ = beneath.directory(path);
    if beneath.create(path, b"new").is_ok() {
        let made: PathBuf = top.path().join("root").join(path);
        std::fs::remove_file(&made).expect("it was made there");
    }
    let mut outside: Vec<_> = std::fs::read_dir(top.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    outside.sort();
    assert_eq!(outside, ["root", "secret"]);
    assert_eq!(
        std::fs::read_to_string(top.path().join("secret")).expect("read"),
        OUTSIDE
    );
}
