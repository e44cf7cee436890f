//! GH-5, S-48: whatever an agent says, what Conductor puts below it stays what it is, as a reader of markdown sees it.

use std::collections::BTreeMap;

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::message::{Body, Message, MessageKind, marker, render};
use conductor_domain::role::{Role, Speaker};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

const PAGE: &str = "http://c/r1";

/// Says something and reads it as the forge does: whether our link leads somewhere, and our marker is none of the text.
fn is_whole(text: &str) -> Result<(), String> {
    let run = RunId::parse("r1").expect("a slug");
    let effect = EffectId::derive(&run, 3, 0);
    let artifact = Artifact::of(ArtifactKind::Plan, text.as_bytes());
    let kept = BTreeMap::from([(artifact.digest.clone(), text.to_owned())]);
    let message = Message {
        speaker: Speaker::Agent(Role::Planner),
        kind: MessageKind::Plan,
        headline: "a plan".into(),
        body: Body::Kept {
            artifact,
            preface: None,
        },
        details: vec![("tree".into(), "abc".into())],
    };
    let said = render(&message, &run, PAGE, &effect, &kept, &str::to_owned);
    let (mut has_link, mut has_details, mut has_marker) = (false, false, false);
    for event in Parser::new_ext(&said, Options::ENABLE_GFM | Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => has_link |= &*dest_url == PAGE,
            Event::Html(html) => {
                has_details |= html.starts_with("<details>");
                has_marker |= html.contains(&marker(&effect));
            }
            _ => {}
        }
    }
    if has_link && has_details && has_marker {
        return Ok(());
    }
    Err(format!(
        "link {has_link}, details {has_details}, marker {has_marker}:\n{said}"
    ))
}

/// GH-5, S-48: an honest block in a list, and hostile ones that pair with fences elsewhere, swallow nothing that follows.
#[test]
fn a_code_block_in_a_list_swallows_nothing() {
    for text in [
        "- ```sh\n  cargo test\n  ```",
        "1. Run it:\n   ```sh\n   cargo test\n   ```",
        "- a\n  ```\n```",
        "> ```\n```",
        "> ```\na",
        "- > ~~~\n~~~",
        "-\t```\n\t```",
        "```\n  ```",
        "* ````\n```\n````",
        "10) ```\n\n    ```\n```",
        "```\n```\t",
        "```\n``` \t \n```",
        "```\n```\u{a0}",
        "```\n```\u{3000}\n```\u{2003}",
    ] {
        assert_eq!(is_whole(text), Ok(()), "{text:?}");
    }
}

/// GH-5, S-48: nor does any other text of the signs that open and close blocks.
#[test]
fn no_text_of_signs_swallows_what_follows() {
    let sign = prop::sample::select(vec![
        "```", "````", "~~~", "`", "~", "- ", "* ", "1. ", "> ", "  ", "    ", "\t", "\u{a0}", "a", "\n",
        "\n\n", "|", "#", "---", "===",
    ]);
    let text = prop::collection::vec(sign, 0..14).prop_map(|signs| signs.concat());
    proptest!(|(text in text)| {
        let whole = is_whole(&text);
        prop_assert!(whole.is_ok(), "{:?}: {}", text, whole.unwrap_err());
    });
}
