//! A problem as a page: what is wrong, its code, and what to do next.
//!
//! The page needs nothing of the database, so that it can say that the database is gone. This module does not know what
//! was asked.

use askama::Template;
use axum::response::{IntoResponse, Response};

use crate::error::Error;
use crate::page::asset;
use crate::page::frame::page;

/// A problem that a person looks at.
#[derive(Debug)]
pub(crate) struct Trouble(Error);

impl<E: Into<Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage {
    style: &'static str,
    code: String,
    detail: String,
    hint: String,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        if let Error::Fault(fault) = &self.0 {
            tracing::warn!(what = %fault.what, "a page met a fault");
        }
        let problem = self.0.problem();
        let body = page(&TroublePage {
            style: asset::STYLE.path,
            code: problem.code,
            detail: crate::visible::line(&problem.detail),
            hint: problem.hint,
        });
        (self.0.status(), body).into_response()
    }
}
