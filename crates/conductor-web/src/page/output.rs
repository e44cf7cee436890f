//! What the test command of a run printed, with its colours, a part at a time.
//!
//! Only what this run's tests printed: an address is no key to whatever else is kept. This module does not know what the
//! output means.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Html;
use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;
use serde::Deserialize;

use crate::actor::Actor;
use crate::door::Door;
use crate::error::Error;
use crate::extract::Asked;
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;
use crate::render::{Piece, ansi};
use crate::visible;

/// So many bytes are shown at once, up to the end of the last line that begins in them.
const SHOWN: usize = 64 * 1024;
/// The longest line that is not cut in two.
const LONGEST: usize = 8 * 1024;

/// Where to begin, in bytes.
#[derive(Debug, Deserialize)]
pub(crate) struct OutputQuery {
    #[serde(default)]
    from: usize,
}

#[derive(Template)]
#[template(path = "output.html")]
struct OutputPage {
    frame: Frame,
    run: String,
    said: String,
    digest: String,
    from: usize,
    end: usize,
    size: usize,
    earlier: Option<usize>,
    lines: Vec<Vec<Piece>>,
}

/// Shows a part of what a test command printed.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Path((run, digest)): Path<(String, String)>,
    Asked(query): Asked<OutputQuery>,
) -> Result<Html<String>, Trouble> {
    let invalid = |what: String| Error::Invalid { what };
    let run = RunId::parse(run).map_err(|error| invalid(error.to_string()))?;
    let digest = Digest::parse(digest).map_err(|error| invalid(error.to_string()))?;
    let detail = door.reader.run(&run).await?;
    let test = detail.tests.iter().find(|test| test.output == digest);
    let test = test.ok_or_else(|| Error::NotFound {
        what: format!("output {digest} of run {run}"),
    })?;
    let bytes = door.reader.artifact(&digest).await?;
    let (from, end) = window(&bytes, query.from);
    Ok(page(&OutputPage {
        frame: Frame::of(&door, &actor, Section::Runs, format!("Output of run {run}")).await?,
        run: run.to_string(),
        said: visible::line(&test.said),
        digest: digest.to_string(),
        from,
        end,
        size: bytes.len(),
        earlier: (from > 0).then(|| from.saturating_sub(SHOWN)),
        lines: ansi::lines(&String::from_utf8_lossy(&bytes[from..end])),
    }))
}

/// The part that is shown: whole lines, unless one is longer than anybody reads.
fn window(bytes: &[u8], from: usize) -> (usize, usize) {
    let from = next_line(bytes, from.min(bytes.len()));
    (
        from,
        next_line(bytes, from.saturating_add(SHOWN).min(bytes.len())),
    )
}

/// The first beginning of a line at a place or after it; the place itself where the line goes on and on.
fn next_line(bytes: &[u8], at: usize) -> usize {
    if at == 0 || bytes[at - 1] == b'\n' {
        return at;
    }
    let reach = bytes.len().min(at + LONGEST);
    match bytes[at..reach].iter().position(|byte| *byte == b'\n') {
        Some(rest) => at + rest + 1,
        None if reach == bytes.len() => reach,
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_cut_no_line_that_is_not_endless() {
        let line = format!("{}\n", "x".repeat(99));
        let text = line.repeat(3000);
        let (first, end) = window(text.as_bytes(), 0);
        assert_eq!((first, end % 100), (0, 0));
        assert!((SHOWN..SHOWN + 100).contains(&end));
        let mut from = 0;
        let mut seen = 0;
        while from < text.len() {
            let (begins, ends) = window(text.as_bytes(), from);
            assert_eq!(begins, from, "nothing is left out between two parts");
            seen += ends - begins;
            from = ends;
        }
        assert_eq!(seen, text.len());
        let endless = "y".repeat(SHOWN * 3);
        assert_eq!(window(endless.as_bytes(), 0), (0, SHOWN));
        assert_eq!(window(endless.as_bytes(), SHOWN), (SHOWN, 2 * SHOWN));
        assert_eq!(window(b"", 0), (0, 0));
        assert_eq!(window(b"abc", usize::MAX), (3, 3));
        assert_eq!(
            window(b"a\nb\nc", 1),
            (2, 5),
            "the middle of a line is not its beginning"
        );
    }
}
