//! Paths that change between check and use, as fast as a hostile process can change them (TOOL-2).

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use conductor_guest::order::Request;
use conductor_guest::response::Response;
use rustix::fs::{CWD, RenameFlags};

use crate::kit::{Guest, Place};

/// How often each path is tried.
const TRIES: usize = 3000;

/// A directory and a link to a directory outside, and a file and a link to a file outside, ready to be swapped.
fn prepare(place: &Place) -> PathBuf {
    let outside = place.base().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), b"secret").unwrap();
    place.write("dir/file", b"inside");
    symlink(&outside, place.work().join("other")).unwrap();
    place.write("name", b"inside");
    symlink(outside.join("file"), place.work().join("other-name")).unwrap();
    outside
}

/// Swaps both pairs until `work` is done, and returns what it returned.
fn while_swapping<T>(dir: &Path, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    let swap = |one: &str, other: &str| {
        rustix::fs::renameat_with(CWD, dir.join(one), CWD, dir.join(other), RenameFlags::EXCHANGE).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                swap("dir", "other");
                swap("name", "other-name");
            }
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        result
    })
}

fn views(guest: &mut Guest, path: &str) -> Vec<Option<Vec<u8>>> {
    (0..TRIES).map(|_| guest.view(path).ok()).collect()
}

/// TOOL-2: no race between check and use.
#[test]
fn a_view_never_sees_what_is_outside() {
    let place = Place::new();
    prepare(&place);
    let mut guest = place.plain();
    for path in ["dir/file", "name"] {
        let seen = while_swapping(&place.work(), || views(&mut guest, path));
        assert!(
            seen.contains(&Some(b"inside".to_vec())) && seen.contains(&None),
            "{path}: there was no race"
        );
        assert!(!seen.contains(&Some(b"secret".to_vec())), "{path}");
    }
}

/// Shows that the race is real: whoever looks first and opens then is led out.
#[test]
fn a_look_before_the_open_is_led_out() {
    let place = Place::new();
    prepare(&place);
    let path = place.work().join("dir");
    let naive = || {
        let looks_safe = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        looks_safe
            .then(|| std::fs::read(path.join("file")).ok())
            .flatten()
    };
    let was_led_out = || (0..1000 * TRIES).any(|_| naive().is_some_and(|bytes| bytes == b"secret"));
    assert!(while_swapping(&place.work(), was_led_out));
}

/// TOOL-2: neither does a write get there.
#[test]
fn a_write_never_lands_outside() {
    let place = Place::new();
    let outside = prepare(&place);
    let mut guest = place.plain();
    let mut made = 0;
    while_swapping(&place.work(), || {
        for number in 0..TRIES {
            let create = Request::CreateFile {
                path: format!("dir/new/{number}").into(),
                content: b"x".to_vec(),
            };
            made += usize::from(guest.result(create) == Response::Done);
            for path in ["dir/file", "name"] {
                let replace = Request::StrReplace {
                    path: path.into(),
                    old: b"e".to_vec(),
                    new: b"E".to_vec(),
                };
                guest.result(replace);
                let back = Request::StrReplace {
                    path: path.into(),
                    old: b"E".to_vec(),
                    new: b"e".to_vec(),
                };
                guest.result(back);
            }
        }
    });
    assert!((1..TRIES).contains(&made), "{made}: there was no race");
    let names: Vec<_> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["file"]);
    assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"secret");
}
