//! TOOL-3: which fields of a board are Conductor's, and what may stand in them.

use std::collections::BTreeMap;

use conductor_domain::board::{InvalidFields, MOST_FIELDS, OwnFields, is_own};

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// TOOL-3: a field is Conductor's by its name, and no trick makes another one so.
#[test]
fn a_field_is_conductors_by_its_name_alone() {
    let longest = format!("Conductor {}", "x".repeat(54));
    for own in ["Conductor", "Conductor note", "Conductor ", &longest] {
        assert!(is_own(own), "{own}");
    }
    let longer = format!("{longest}x");
    for other in [
        "",
        "Status",
        "conductor note",
        " Conductor note",
        "Conductors",
        "Conductor-note",
        "Conductor\u{a0}note",
        "Conductor no\u{200b}te",
        "Conductor no\nte",
        "Conductor no\tte",
        &longer,
    ] {
        assert!(!is_own(other), "{other:?}");
    }
}

/// TOOL-3, S-48: values are one line, not too long, and show what is hidden in them.
#[test]
fn values_are_short_lines_that_hide_nothing() {
    let shown = OwnFields::new(fields(&[("Conductor note", "a\u{202e}b")])).expect("taken");
    assert_eq!(shown.values()["Conductor note"], "a\u{27e8}U+202E\u{27e9}b");
    let name = "Conductor note";
    let longest = "ä".repeat(1024);
    assert!(OwnFields::new(fields(&[(name, &longest)])).is_ok());
    for value in ["two\nlines", "a\ttab", &format!("{longest}x")] {
        let refused = OwnFields::new(fields(&[(name, value)]));
        assert_eq!(refused, Err(InvalidFields::Value(name.to_owned())));
    }
    assert_eq!(OwnFields::new(fields(&[])), Err(InvalidFields::Count));
    let foreign = OwnFields::new(fields(&[(name, "x"), ("Status", "Done")]));
    assert_eq!(foreign, Err(InvalidFields::NotOwn("Status".to_owned())));
    let many: BTreeMap<String, String> = (0..=MOST_FIELDS)
        .map(|n| (format!("Conductor {n}"), String::new()))
        .collect();
    assert_eq!(OwnFields::new(many.clone()), Err(InvalidFields::Count));
    assert!(OwnFields::new(many.into_iter().take(MOST_FIELDS).collect()).is_ok());
}

/// ARCHITECTURE invariant 6: what is kept is held to the same rules when it is read again.
#[test]
fn what_is_kept_is_checked_when_it_is_read() {
    let read = |text: &str| serde_json::from_str::<OwnFields>(text);
    let kept = OwnFields::new(fields(&[("Conductor note", "busy")])).expect("taken");
    let text = serde_json::to_string(&kept).expect("plain text");
    assert_eq!(text, r#"{"Conductor note":"busy"}"#);
    assert_eq!(read(&text).expect("read"), kept);
    assert!(read("{}").expect("read").is_empty());
    assert!(read(r#"{"Status":"Done"}"#).is_err());
}
