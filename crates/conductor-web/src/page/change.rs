//! What a run's newest commit changes, file by file; a long one a file at a time.
//!
//! For looking at, at any time: what is to be approved stands at its gate, whole. This module does not know git.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{ChangeView, ChangedFile};
use crate::door::Door;
use crate::extract::{Asked, NamedRun};
use crate::page::frame::{Frame, Section, page};
use crate::page::run::{TextLine, change};
use crate::page::trouble::Trouble;
use crate::visible;
use crate::words::text;

/// A change up to this long stands on the run's own page; of a longer one only the names do.
const SHORT: u64 = 64 * 1024;

/// Which file.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangeQuery {
    file: Option<usize>,
}

#[derive(Template)]
#[template(path = "change.html")]
struct ChangePage {
    frame: Frame,
    run: String,
    title: String,
    repo: String,
    change: Option<Change>,
}

/// A change as a page shows it.
pub(crate) struct Change {
    pub(crate) base: String,
    pub(crate) head: String,
    pub(crate) digest: String,
    pub(crate) counted: String,
    pub(crate) is_cut: bool,
    pub(crate) files: Vec<File>,
}

/// What became of one file.
pub(crate) struct File {
    pub(crate) place: usize,
    pub(crate) says: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// Empty where the file is shown by itself.
    pub(crate) lines: Vec<TextLine>,
    pub(crate) hidden: String,
}

impl Change {
    /// Puts a change into the words of a page; lines stand there for the files whose text is given.
    fn of(change: ChangeView) -> Self {
        let (added, removed) = change.files.iter().fold((0, 0), |(added, removed), file| {
            (added + file.added, removed + file.removed)
        });
        let count = text::count(change.files.len(), "file");
        Self {
            base: change.base,
            head: change.head,
            digest: change.digest.to_string(),
            counted: format!("{count}, {added} added and {removed} removed lines"),
            is_cut: change.truncated,
            files: change.files.into_iter().enumerate().map(File::of).collect(),
        }
    }

    /// What stands on the run's own page.
    pub(crate) fn briefly(mut change: ChangeView) -> Self {
        if change.bytes > SHORT {
            for file in &mut change.files {
                file.text = None;
            }
        }
        Self::of(change)
    }
}

impl File {
    fn of((place, file): (usize, ChangedFile)) -> Self {
        let shown = visible::text(file.text.as_deref().unwrap_or_default());
        let content = shown.text.split_once('\n').map_or("", |(_, content)| content);
        Self {
            place,
            says: visible::line(&file.says),
            added: file.added,
            removed: file.removed,
            lines: change(content),
            hidden: shown.told(),
        }
    }
}

/// Shows what the newest commit changes: the one file that was asked for, or all where they are short.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Asked(query): Asked<ChangeQuery>,
) -> Result<Html<String>, Trouble> {
    let found = door.reader.change(&id, query.file).await?;
    let (row, _) = door.reader.state(&id).await?;
    let change = found.map(|found| match query.file {
        Some(_) => Change::of(found),
        None => Change::briefly(found),
    });
    Ok(page(&ChangePage {
        frame: Frame::of(&door, &actor, Section::Runs, format!("Change of run {id}")).await?,
        run: id.to_string(),
        title: visible::line(&row.title),
        repo: visible::line(&row.repo_name),
        change,
    }))
}
