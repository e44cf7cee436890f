//! Lists and searches: sorted, bounded, never through a link.

use std::os::unix::fs::symlink;

use conductor_guest::order::{Pattern, Request, Walk};
use conductor_guest::response::{Entry, Kind, Match, Refusal, Response, Walked};

use crate::kit::{Guest, PLENTY, Place};

fn everything() -> Walk {
    Walk {
        path: "".into(),
        depth: 10,
        findings: 10_000,
        time_ms: u32::try_from(PLENTY).unwrap(),
        skip: vec![".git".into()],
    }
}

fn list(guest: &mut Guest, walk: Walk) -> (Vec<String>, Response) {
    let mut answers = guest.ask(Request::List(walk));
    let result = answers.pop().unwrap();
    let entries = answers.into_iter().flat_map(|answer| match answer {
        Response::Entries(entries) => entries,
        other => panic!("{other:?}"),
    });
    let show = |Entry { path, kind, size }: Entry| {
        let sign = match kind {
            Kind::File => format!(" {size}"),
            Kind::Directory => "/".to_owned(),
            Kind::Symlink => "@".to_owned(),
            Kind::Other => "?".to_owned(),
        };
        format!("{}{sign}", path.display())
    };
    (entries.map(show).collect(), result)
}

fn search(guest: &mut Guest, pattern: Pattern, walk: Walk) -> (Vec<String>, Response) {
    let mut answers = guest.ask(Request::Search { walk, pattern });
    let result = answers.pop().unwrap();
    let matches = answers.into_iter().flat_map(|answer| match answer {
        Response::Matches(matches) => matches,
        other => panic!("{other:?}"),
    });
    let show = |Match { path, line, text }: Match| {
        format!("{}:{line}:{}", path.display(), String::from_utf8_lossy(&text))
    };
    (matches.map(show).collect(), result)
}

fn walked(is_complete: bool, skipped: u32) -> Response {
    Response::Walked(Walked { is_complete, skipped })
}

fn place() -> Place {
    let place = Place::new();
    place.write("b/deep/file", b"needle\n");
    place.write("b/a", b"hay\nneedle 1\nhay\nneedle 2");
    place.write(".git/config", b"needle\n");
    place.write("a.bin", b"needle\0\n");
    std::fs::create_dir(place.base().join("outside")).unwrap();
    std::fs::write(place.base().join("outside/secret"), b"needle\n").unwrap();
    symlink("../outside", place.work().join("link")).unwrap();
    place
}

/// TOOL-2.
#[test]
fn a_list_is_sorted_and_enters_no_link() {
    let place = place();
    let mut guest = place.plain();
    let all = [
        ".git/",
        "a.bin 8",
        "b/",
        "b/a 25",
        "b/deep/",
        "b/deep/file 7",
        "link@",
    ];
    assert_eq!(
        list(&mut guest, everything()),
        (all.map(String::from).to_vec(), walked(true, 0))
    );
    let shallow = Walk {
        path: "b".into(),
        depth: 1,
        ..everything()
    };
    let (entries, result) = list(&mut guest, shallow);
    assert_eq!(
        (entries, result),
        (vec!["b/a 25".into(), "b/deep/".into()], walked(true, 0))
    );
}

/// TOOL-2.
#[test]
fn a_walk_begins_neither_outside_nor_at_a_link() {
    let place = place();
    symlink("b", place.work().join("inside")).unwrap();
    let mut guest = place.plain();
    for (path, refusal) in [
        ("..", Refusal::Outside),
        ("/", Refusal::Outside),
        ("link", Refusal::Link),
        ("inside", Refusal::Link),
        ("inside/deep", Refusal::Link),
        ("gone", Refusal::NotFound),
        ("b/a", Refusal::NotADirectory),
    ] {
        let walk = Walk {
            path: path.into(),
            ..everything()
        };
        assert_eq!(
            list(&mut guest, walk),
            (Vec::new(), Response::Refused(refusal)),
            "{path}"
        );
    }
}

/// TOOL-2.
#[test]
fn a_search_finds_lines_and_skips_what_is_no_text() {
    let place = place();
    let mut guest = place.plain();
    let found = ["b/a:2:needle 1", "b/a:4:needle 2", "b/deep/file:1:needle"]
        .map(String::from)
        .to_vec();
    let literal = Pattern::Literal(b"needle".to_vec());
    assert_eq!(
        search(&mut guest, literal, everything()),
        (found.clone(), walked(true, 1))
    );
    let regex = |text: &str| Pattern::Regex(text.to_owned());
    assert_eq!(
        search(&mut guest, regex("^nee?dle"), everything()),
        (found.clone(), walked(true, 1))
    );
    assert_eq!(
        search(&mut guest, regex(r"needle \d$"), everything()),
        (found[..2].to_vec(), walked(true, 1))
    );
    let (none, refused) = search(&mut guest, regex("(("), everything());
    assert!(
        none.is_empty() && matches!(refused, Response::Refused(Refusal::Invalid(_))),
        "{refused:?}"
    );
}

#[test]
fn a_walk_stops_at_its_limits_and_says_so() {
    let place = Place::new();
    for number in 0..300 {
        place.write(&format!("{number:03}"), b"line\nline\n");
    }
    let mut guest = place.plain();
    let few = Walk {
        findings: 250,
        ..everything()
    };
    let (entries, result) = list(&mut guest, few.clone());
    assert_eq!((entries.len(), result), (250, walked(false, 0)));
    let (matches, result) = search(&mut guest, Pattern::Literal(b"line".to_vec()), few);
    assert_eq!((matches.len(), result), (250, walked(false, 0)));
    let late = Walk {
        time_ms: 0,
        ..everything()
    };
    let (entries, result) = list(&mut guest, late);
    assert_eq!((entries.len(), result), (0, walked(false, 0)));
}

/// A long walk delays no command.
#[test]
fn a_command_runs_while_a_walk_goes_on() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--root", "/usr"]);
    let walk = Walk {
        findings: 1,
        ..everything()
    };
    let search = guest.begin(Request::Search {
        walk,
        pattern: Pattern::Regex("x(never)+y$".into()),
    });
    let ping = guest.begin(Request::Ping);
    assert_eq!(guest.next().0.id, ping);
    assert_eq!(guest.calls.open().collect::<Vec<_>>(), [search]);
    // The rest of the machine's programs need not be read for this.
    let shutdown = guest.begin(Request::Shutdown);
    assert_eq!(guest.next().0.id, shutdown);
}
