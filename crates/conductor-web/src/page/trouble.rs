//! A problem as a page: what is wrong, its code, and what to do next.
//!
//! The page needs nothing of the database, so that it can say that the database is gone. This module does not know what
//! was asked.

use askama::Template;
use axum::response::{IntoResponse, Response};
use conductor_domain::id::RunId;

use crate::door::Door;
use crate::error::Error;
use crate::page::asset;
use crate::page::frame::page;
use crate::page::run::{Told, story};

/// A problem that a person looks at.
#[derive(Debug)]
pub(crate) struct Trouble {
    error: Error,
    /// The run whose page it was, to go back to.
    run: Option<String>,
    /// What happened since that page was loaded, newest first.
    since: Vec<Told>,
}

impl<E: Into<Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            run: None,
            since: vec![],
        }
    }
}

impl Trouble {
    /// A problem with what was asked on a run's page, with what has changed there since it was loaded.
    pub(crate) async fn on_a_page(door: &Door, run: &RunId, seen: Option<u64>, error: Error) -> Self {
        let now = door.settings.clock.now();
        let mut trouble = Self::from(error);
        if let Ok(records) = door
            .reader
            .events(run, seen.unwrap_or(i64::MAX.unsigned_abs()), u32::MAX)
            .await
        {
            trouble.since = story(&records.events, now);
            trouble.run = Some(run.to_string());
        }
        trouble
    }
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage {
    style: &'static str,
    code: String,
    detail: String,
    hint: String,
    run: Option<String>,
    since: Vec<Told>,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        if let Error::Fault(fault) = &self.error {
            tracing::warn!(what = %fault.what, "a page met a fault");
        }
        let problem = self.error.problem();
        let body = page(&TroublePage {
            style: asset::STYLE.path,
            code: problem.code,
            detail: crate::visible::line(&problem.detail),
            hint: problem.hint,
            run: self.run,
            since: self.since,
        });
        (self.error.status(), body).into_response()
    }
}
