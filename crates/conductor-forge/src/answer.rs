//! Builds HTTP answers in GitHub's manner: JSON, error bodies, pages with `Link`, rate headers.
//!
//! It does not know which operation is answered.

#![allow(
    clippy::unnecessary_wraps,
    reason = "a handler ends with one of these, and handlers can refuse"
)]

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, LINK, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::auth::Window;
use crate::refusal::Refusal;
use crate::rest::Call;

pub(crate) type Answer = Result<Response<Body>, Refusal>;

pub(crate) const MOST_PER_PAGE: usize = 100;
const USUAL_PER_PAGE: usize = 30;

pub(crate) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, "application/json; charset=utf-8");
    response
}

pub(crate) fn ok(value: &Value) -> Answer {
    Ok(json(StatusCode::OK, value))
}

pub(crate) fn created(value: &Value) -> Answer {
    let mut response = json(StatusCode::CREATED, value);
    if let Some(url) = value["url"].as_str() {
        set(&mut response, LOCATION, url);
    }
    Ok(response)
}

pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    Ok(response)
}

/// Sets a header; a value that HTTP cannot carry is left out.
pub(crate) fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json(status, &self.body());
        if let Self::Moved { location } = &self {
            set(&mut response, LOCATION, location);
        }
        if let Self::Broken(reason) = &self {
            tracing::error!(%reason, "the forge could not answer");
        }
        response
    }
}

/// Parses a request body; GitHub tells malformed JSON, non-objects and wrong fields apart.
pub(crate) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    let value: Value =
        serde_json::from_slice(body).map_err(|_| Refusal::BadRequest("Problems parsing JSON".into()))?;
    if !value.is_object() {
        return Err(Refusal::BadRequest("Body should be a JSON object".into()));
    }
    serde_json::from_value(value)
        .map_err(|error| Refusal::Unprocessable(format!("Invalid request.\n\n{error}")))
}

/// Answers with the asked page of a list; `wrap` puts a list into its envelope where there is one.
pub(crate) fn page(call: &Call, items: Vec<Value>, wrap: impl FnOnce(usize, Vec<Value>) -> Value) -> Answer {
    let number = |key: &str, usual: usize| {
        call.query(key)
            .and_then(|text| text.parse().ok())
            .unwrap_or(usual)
    };
    let per_page = number("per_page", USUAL_PER_PAGE).clamp(1, MOST_PER_PAGE);
    let page = number("page", 1).max(1);
    let total = items.len();
    let last = total.div_ceil(per_page).max(1);
    let shown = items
        .into_iter()
        .skip((page - 1).saturating_mul(per_page))
        .take(per_page)
        .collect();
    let mut response = json(StatusCode::OK, &wrap(total, shown));
    let mut links = Vec::new();
    let mut link = |relation: &str, target: usize| {
        let target = target.to_string();
        links.push(format!(
            "<{}>; rel=\"{relation}\"",
            call.url_with(&[("page", &target)])
        ));
    };
    if page > 1 {
        link("prev", page - 1);
        link("first", 1);
    }
    if page < last {
        link("next", page + 1);
        link("last", last);
    }
    if !links.is_empty() {
        set(&mut response, LINK, &links.join(", "));
    }
    Ok(response)
}

pub(crate) fn bare_list(_total: usize, items: Vec<Value>) -> Value {
    Value::Array(items)
}

pub(crate) fn set_rate(response: &mut Response<Body>, window: &Window) {
    let headers = [
        ("x-ratelimit-limit", window.limit.to_string()),
        ("x-ratelimit-remaining", window.remaining().to_string()),
        ("x-ratelimit-used", window.used.to_string()),
        ("x-ratelimit-reset", window.resets_at.as_second().to_string()),
        ("x-ratelimit-resource", "core".to_owned()),
    ];
    for (name, value) in headers {
        set(response, HeaderName::from_static(name), &value);
    }
}

/// The hourly budget is used up.
pub(crate) fn primary_limit(budget: &str, window: &Window) -> Response<Body> {
    let refusal = Refusal::Forbidden(format!("API rate limit exceeded for {budget}."));
    let mut response = refusal.into_response();
    set_rate(&mut response, window);
    response
}

/// The abuse limit; GitHub does not always say how long to wait.
pub(crate) fn secondary_limit(retry_after: Option<u64>) -> Response<Body> {
    let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    let mut response = Refusal::Forbidden(message.into()).into_response();
    if let Some(seconds) = retry_after {
        set(&mut response, RETRY_AFTER, &seconds.to_string());
    }
    response
}

pub(crate) fn plain_status(status: u16) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(
        status,
        &json!({ "message": status.canonical_reason().unwrap_or("Error"), "status": status.as_str() }),
    )
}
