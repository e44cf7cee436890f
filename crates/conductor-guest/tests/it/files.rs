//! File requests against paths and files that are not what they seem.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use conductor_guest::file::MAX_FILE;
use conductor_guest::order::{Range, Request};
use conductor_guest::response::{Refusal, Response};

use crate::kit::{Guest, Place};

fn create(guest: &mut Guest, path: &str, content: &[u8]) -> Response {
    guest.result(Request::CreateFile {
        path: path.into(),
        content: content.to_vec(),
    })
}

fn replace(guest: &mut Guest, path: &str, old: &str, new: &str) -> Response {
    guest.result(Request::StrReplace {
        path: path.into(),
        old: old.into(),
        new: new.into(),
    })
}

/// All three requests refuse the path for this reason.
fn check_refused(guest: &mut Guest, path: &str, refusal: &Refusal) {
    let refused = Response::Refused(refusal.clone());
    assert_eq!(guest.view(path), Err(refused.clone()), "view {path:?}");
    assert_eq!(replace(guest, path, "a", "b"), refused, "replace {path:?}");
    assert_eq!(create(guest, path, b"x"), refused, "create {path:?}");
}

/// TOOL-2, S-46: no path leads out.
#[test]
fn a_path_that_leads_out_is_refused() {
    let place = Place::new();
    std::fs::write(place.base().join("secret"), b"a").unwrap();
    place.write("dir/file", b"a");
    symlink("..", place.work().join("up")).unwrap();
    symlink("/", place.work().join("top")).unwrap();
    symlink("/proc/self/root", place.work().join("magic")).unwrap();
    symlink("/proc/self/cwd/..", place.work().join("dir/magic")).unwrap();
    let mut guest = place.plain();
    for path in [
        "..",
        "../secret",
        "dir/../../secret",
        "dir/../file",
        "/etc/passwd",
        "//etc/passwd",
    ] {
        check_refused(&mut guest, path, &Refusal::Outside);
    }
    for path in [
        "up/secret",
        "top/etc/passwd",
        "magic/etc/passwd",
        "dir/magic/secret",
    ] {
        check_refused(&mut guest, path, &Refusal::Link);
    }
    assert_eq!(std::fs::read(place.base().join("secret")).unwrap(), b"a");
}

/// TOOL-2, S-46: the last name is never a link, wherever it leads.
#[test]
fn a_link_as_the_last_name_is_refused() {
    let place = Place::new();
    place.write("file", b"a");
    symlink("file", place.work().join("inside")).unwrap();
    symlink("../secret", place.work().join("outside")).unwrap();
    symlink("nowhere", place.work().join("dangling")).unwrap();
    symlink("loop", place.work().join("loop")).unwrap();
    let mut guest = place.plain();
    for path in ["inside", "outside", "dangling", "loop"] {
        assert_eq!(guest.view(path), Err(Response::Refused(Refusal::Link)), "{path}");
        assert_eq!(
            replace(&mut guest, path, "a", "b"),
            Response::Refused(Refusal::Link),
            "{path}"
        );
        assert_eq!(
            create(&mut guest, path, b"x"),
            Response::Refused(Refusal::Exists),
            "{path}"
        );
    }
    assert_eq!(place.read("file"), b"a");
}

/// TOOL-2, SEC-1: policies judge the name that was given, so no name leads to another place, not even inside.
#[test]
fn a_linked_directory_inside_is_not_passed_through() {
    let place = Place::new();
    place.write("real/deep/file", b"there");
    symlink("real", place.work().join("linked")).unwrap();
    symlink("../real/deep", place.work().join("real/again")).unwrap();
    let mut guest = place.plain();
    for path in [
        "linked/deep/file",
        "linked/new",
        "linked/made/new",
        "real/again/file",
        "./linked//deep/./file",
    ] {
        check_refused(&mut guest, path, &Refusal::Link);
    }
    assert_eq!(guest.view("real/deep/file"), Ok(b"there".to_vec()));
    assert!(!place.work().join("real/new").exists() && !place.work().join("real/made").exists());
}

/// TOOL-2: a magic link beneath the root, which `..` and symlink rules alone would not stop.
#[test]
fn magic_links_are_refused() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--root", "/proc"]);
    for path in [
        "self/root/etc/passwd",
        "self/cwd/x",
        "thread-self/root/etc/passwd",
    ] {
        let Err(Response::Refused(refusal)) = guest.view(path) else {
            panic!("{path} was read")
        };
        assert!(
            matches!(refusal, Refusal::Link | Refusal::Denied),
            "{path}: {refusal:?}"
        );
    }
}

/// S-46: what is not a regular file is refused, and nobody waits at it.
#[test]
fn pipes_sockets_devices_and_directories_are_refused() {
    let place = Place::new();
    place.write("dir/file", b"");
    let mut guest = place.plain();
    guest.script("mkfifo fifo; : > real");
    let _socket = std::os::unix::net::UnixListener::bind(place.work().join("socket")).unwrap();
    for path in ["fifo", "socket", "dir"] {
        assert_eq!(
            guest.view(path),
            Err(Response::Refused(Refusal::NotAFile)),
            "{path}"
        );
        assert_eq!(
            replace(&mut guest, path, "a", "b"),
            Response::Refused(Refusal::NotAFile),
            "{path}"
        );
        assert_eq!(
            create(&mut guest, path, b"x"),
            Response::Refused(Refusal::Exists),
            "{path}"
        );
    }
    let mut devices = place.plain_with(&["--root", "/dev"]);
    for path in ["null", "zero", "tty"] {
        let answer = devices.view(path);
        assert_eq!(answer, Err(Response::Refused(Refusal::NotAFile)), "{path}");
    }
}

#[test]
fn names_that_are_no_files_are_refused() {
    let place = Place::new();
    place.write("file", b"a");
    let mut guest = place.plain();
    check_refused(&mut guest, "", &Refusal::NotAFile);
    check_refused(&mut guest, ".", &Refusal::NotAFile);
    check_refused(&mut guest, "file/", &Refusal::NotAFile);
    check_refused(
        &mut guest,
        "fi\0le",
        &Refusal::Invalid("a path holds a NUL byte".into()),
    );
    check_refused(&mut guest, "file/below", &Refusal::NotADirectory);
    let endless = "x".repeat(300);
    assert!(matches!(
        guest.view(endless),
        Err(Response::Refused(Refusal::Invalid(_)))
    ));
    assert_eq!(guest.view("gone"), Err(Response::Refused(Refusal::NotFound)));
    assert_eq!(guest.view("gone/file"), Err(Response::Refused(Refusal::NotFound)));
}

/// EXEC-7.
#[test]
fn a_file_that_is_too_large_is_refused_unread() {
    let place = Place::new();
    place.write("huge", b"");
    let file = std::fs::File::options()
        .write(true)
        .open(place.work().join("huge"))
        .unwrap();
    file.set_len(200_000_000).unwrap();
    let too_large = Response::Refused(Refusal::TooLarge {
        limit: MAX_FILE as u64,
    });
    let mut guest = place.plain();
    assert_eq!(guest.view("huge"), Err(too_large.clone()));
    assert_eq!(
        guest.view_range("huge", Range::Lines { first: 1, last: 1 }),
        Err(too_large.clone())
    );
    assert_eq!(replace(&mut guest, "huge", "a", "b"), too_large);
    assert_eq!(create(&mut guest, "new", &vec![0; MAX_FILE + 1]), too_large);
    assert!(guest.peak_memory() < 64 * 1024, "{} KiB", guest.peak_memory());
    let largest = vec![7; MAX_FILE];
    assert_eq!(create(&mut guest, "largest", &largest), Response::Done);
    assert_eq!(guest.view("largest"), Ok(largest));
}

/// A file that never ends where a size is claimed: the limit is held while reading.
#[test]
fn a_file_of_unknown_size_is_read_as_it_is() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--root", "/proc/sys/kernel"]);
    assert_eq!(guest.view("ostype"), Ok(b"Linux\n".to_vec()));
}

#[test]
fn content_is_bytes_and_never_passes_a_shell() {
    let place = Place::new();
    let mut guest = place.plain();
    let odd = b"EOF\n'\"$(touch owned)`touch owned`\\\0\xff\r\n without a last line end";
    assert_eq!(create(&mut guest, "deep/er/odd", odd), Response::Done);
    assert_eq!(place.read("deep/er/odd"), odd);
    assert_eq!(guest.view("deep/er/odd"), Ok(odd.to_vec()));
    let name = PathBuf::from(OsStr::from_bytes(b"not\xfftext"));
    let request = Request::CreateFile {
        path: name.clone(),
        content: b"x".to_vec(),
    };
    assert_eq!(guest.result(request), Response::Done);
    assert_eq!(guest.view(name), Ok(b"x".to_vec()));
}

#[test]
fn creating_never_overwrites() {
    let place = Place::new();
    place.write("file", b"old");
    let mut guest = place.plain();
    assert_eq!(
        create(&mut guest, "file", b"new"),
        Response::Refused(Refusal::Exists)
    );
    assert_eq!(place.read("file"), b"old");
    let names: Vec<_> = std::fs::read_dir(place.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["file"], "nothing half-made stays");
}

#[test]
fn replacing_takes_exactly_one_place() {
    let place = Place::new();
    place.write("file", b"one\ntwo\nthree two\n");
    std::fs::set_permissions(place.work().join("file"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let mut guest = place.plain();
    let ambiguous = |lines: &[u32], has_more| {
        let lines = lines.to_vec();
        Response::Refused(Refusal::Ambiguous { lines, has_more })
    };
    assert_eq!(replace(&mut guest, "file", "two", "2"), ambiguous(&[2, 3], false));
    assert_eq!(
        replace(&mut guest, "file", "four", "4"),
        Response::Refused(Refusal::NoMatch)
    );
    let empty = Refusal::Invalid("the text to replace is empty".into());
    assert_eq!(replace(&mut guest, "file", "", "4"), Response::Refused(empty));
    assert_eq!(place.read("file"), b"one\ntwo\nthree two\n");
    assert_eq!(
        replace(&mut guest, "file", "e two\n", "e\n'\\1&$0"),
        Response::Done
    );
    assert_eq!(place.read("file"), b"one\ntwo\nthree\n'\\1&$0");
    let mode = std::fs::metadata(place.work().join("file"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750, "it stays what it was");
    place.write("overlap", b"aaa");
    assert_eq!(
        replace(&mut guest, "overlap", "aa", "b"),
        ambiguous(&[1, 1], false)
    );
    place.write("many", "x\n".repeat(500).as_bytes());
    let first: Vec<u32> = (1..=100).collect();
    assert_eq!(replace(&mut guest, "many", "x", "y"), ambiguous(&first, true));
}

#[test]
fn lines_are_counted_from_one_and_both_ends_count() {
    let place = Place::new();
    place.write("file", b"1\n2\n3\nlast");
    place.write("empty", b"");
    let mut guest = place.plain();
    let mut check = |path: &str, first, last, expected: Result<&str, &str>| {
        let expected = match expected {
            Ok(text) => Ok(text.as_bytes().to_vec()),
            Err(why) => Err(Response::Refused(Refusal::Invalid(why.into()))),
        };
        assert_eq!(
            guest.view_range(path, Range::Lines { first, last }),
            expected,
            "{path} {first} {last}"
        );
    };
    check("file", 1, 1, Ok("1\n"));
    check("file", 2, 3, Ok("2\n3\n"));
    check("file", 4, 4, Ok("last"));
    check("file", 3, u32::MAX, Ok("3\nlast"));
    check("empty", 1, 1, Ok(""));
    check("file", 5, 9, Err("line 5 is beyond the last, 4"));
    check("file", 0, 9, Err("there are no lines 0 to 9"));
    check("file", 3, 2, Err("there are no lines 3 to 2"));
}

#[test]
fn what_the_sandbox_may_not_write_is_denied() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--root", "/usr"]);
    assert_eq!(
        create(&mut guest, "conductor-was-here", b"x"),
        Response::Refused(Refusal::Denied)
    );
}
