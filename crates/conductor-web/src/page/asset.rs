//! The one style sheet and the one script, compiled in; an address carries the content's hash, so browsers keep them.
//!
//! This module does not know what they do.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::error::Error;
use crate::page::trouble::Trouble;

/// A compiled-in file.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its address.
    pub(crate) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// The style sheet.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    asset(
        "css",
        "text/css; charset=utf-8",
        include_str!("../../assets/conductor.css"),
    )
});
/// The script.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    asset(
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../../assets/conductor.js"),
    )
});

fn asset(ending: &str, kind: &'static str, text: &'static str) -> Asset {
    let hash = conductor_domain::digest::Digest::of(text.as_bytes());
    Asset {
        // Made twice in the life of a process.
        path: String::leak(format!("/static/conductor-{}.{ending}", hash.short())),
        kind,
        text,
    }
}

/// Serves a compiled-in file.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let asked = format!("/static/{name}");
    let found = [&*STYLE, &*SCRIPT].into_iter().find(|asset| asset.path == asked);
    let Some(asset) = found else {
        return Trouble::from(Error::NotFound {
            what: format!("address `{asked}`"),
        })
        .into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
    ];
    (headers, asset.text).into_response()
}
