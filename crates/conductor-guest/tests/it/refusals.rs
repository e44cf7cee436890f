//! Each refusal of the file tools: what it stops, and that nothing else stops it without it (TOOL-2, S-46).
//!
//! One row and one test per refusal, a section of `docs/protections.md`, checked against the code's own list.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use conductor_guest::file::{Beneath, MAX_FILE, Switch};
use conductor_guest::order::Range;
use rustix::fs::{CWD, FileType, Mode};

use crate::matrix::{self, Line};

struct Row {
    test: &'static str,
    refusal: Switch,
    /// Whether the attack gets through.
    attack: fn(Beneath, &Path) -> bool,
    /// Others that would stop the attack as well, and are left out both times.
    beside: &'static [Switch],
}

macro_rules! rows {
    ($( $test:ident: $refusal:ident $(beside $($beside:ident)+)? = $attack:expr; )+) => {
        const ROWS: &[Row] = &[ $( Row {
            test: stringify!($test),
            refusal: Switch::$refusal,
            attack: $attack,
            beside: &[ $( $( Switch::$beside ),+ )? ],
        }, )+ ];

        mod each {
            $(
                /// TOOL-2, S-46.
                #[test]
                fn $test() {
                    super::check(stringify!($test));
                }
            )+
        }
    };
}

rows! {
    parents: NoParents beside Beneath = |files, _| views(&files, "../secret", b"secret");
    links_out: Beneath beside NoLinks = |files, _| views(&files, "up/secret", b"secret");
    writes_through_links: Beneath beside NoLinks = |files, dir| {
        let _ = files.create(Path::new("up/new"), b"x");
        dir.parent().unwrap().join("new").exists()
    };
    magic_links: NoMagicLinks beside Beneath NoLinks = |files, _| {
        views(&files, "magic/work/file", b"inside")
    };
    links_inside: NoLinks = |files, _| views(&files, "linked/file", b"inside");
    writes_through_links_inside: NoLinks = |files, dir| {
        let _ = files.create(Path::new("linked/new"), b"x");
        dir.join("new").exists()
    };
    last_links: NoFollow beside NoLinks = |files, _| views(&files, "link", b"inside");
    pipes: RegularFiles = |files, _| views(&files, "pipe", b"");
    waiting: NonBlocking = waits;
    large_files: SizeLimit = |files, dir| {
        std::fs::write(dir.join("large"), vec![0; MAX_FILE + 1]).unwrap();
        files.view(Path::new("large"), Range::Whole).is_ok()
    };
    creating_over: NoReplace = |files, dir| {
        let _ = files.create(Path::new("file"), b"over");
        std::fs::read(dir.join("file")).unwrap() == b"over"
    };
}

fn views(files: &Beneath, path: &str, content: &[u8]) -> bool {
    files
        .view(Path::new(path), Range::Whole)
        .is_ok_and(|bytes| bytes == content)
}

/// Whether whoever views a pipe is kept waiting.
fn waits(files: Beneath, dir: &Path) -> bool {
    let (tell, told) = mpsc::channel();
    let viewing = std::thread::spawn(move || {
        let _ = files.view(Path::new("pipe"), Range::Whole);
        let _ = tell.send(());
    });
    let is_kept = told.recv_timeout(Duration::from_millis(500)).is_err();
    if is_kept {
        // Lets it go.
        std::fs::OpenOptions::new()
            .write(true)
            .open(dir.join("pipe"))
            .unwrap();
    }
    viewing.join().unwrap();
    is_kept
}

fn check(test: &str) {
    let row = ROWS.iter().find(|row| row.test == test).unwrap();
    let gets_through = |switches: &[Switch]| {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("work");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        std::fs::write(dir.join("file"), "inside").unwrap();
        symlink("..", dir.join("up")).unwrap();
        symlink("file", dir.join("link")).unwrap();
        symlink(".", dir.join("linked")).unwrap();
        let held = std::fs::File::open(place.path()).unwrap();
        let magic = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
        symlink(magic, dir.join("magic")).unwrap();
        rustix::fs::mknodat(
            CWD,
            dir.join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let files = Beneath::open(&dir).unwrap();
        let files = switches
            .iter()
            .fold(files, |files, switch| files.without(*switch));
        (row.attack)(files, &dir)
    };
    assert!(!gets_through(row.beside), "{test} in force");
    assert!(
        gets_through(&[row.beside, &[row.refusal]].concat()),
        "{test} left out"
    );
}

/// TOOL-2, S-46: every refusal of the code has a row, and every row stands in the matrix; the races with them.
#[test]
fn the_matrix_has_every_refusal() {
    let mut lines = Vec::new();
    for switch in Switch::ALL {
        let rows = ROWS.iter().filter(|row| row.refusal == *switch);
        lines.push(Line {
            protection: format!("file tools: {switch:?}"),
            requirement: "TOOL-2, S-46".to_owned(),
            tests: rows
                .map(|row| format!("conductor-guest::it refusals::each::{}", row.test))
                .collect(),
        });
    }
    lines.push(Line {
        protection: "file tools: races".to_owned(),
        requirement: "TOOL-2, S-46".to_owned(),
        tests: [
            "a_view_never_sees_what_is_outside",
            "a_write_never_lands_outside",
            "a_look_before_the_open_is_led_out",
        ]
        .map(|test| format!("conductor-guest::it races::{test}"))
        .into(),
    });
    matrix::check("refusals", &lines);
}
