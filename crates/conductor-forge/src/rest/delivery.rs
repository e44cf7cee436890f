//! Answers calls about the App's webhook: its address and its deliveries.
//!
//! Deliveries are paged by cursor, not by page number, as at GitHub.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::LINK;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::answer::{self, Answer, MOST_PER_PAGE, set};
use crate::hook::{self, Delivery};
use crate::refusal::Refusal;
use crate::state::Hook;

pub(crate) async fn config(call: Call) -> Answer {
    call.caller.require_app()?;
    let url = call
        .site
        .look(|state| state.hook.as_ref().map(|hook| hook.url.clone()));
    answer::ok(&json!({ "content_type": "json", "insecure_ssl": "0", "secret": "********", "url": url }))
}

#[derive(Deserialize)]
struct Wish {
    url: Option<String>,
    secret: Option<String>,
}

pub(crate) async fn configure(call: Call, body: Bytes) -> Answer {
    call.caller.require_app()?;
    let wish: Wish = answer::parse(&body)?;
    call.site.change(|change| {
        let old = change.state.hook.take();
        let (old_url, old_secret) = old.map_or((None, None), |hook| (Some(hook.url), Some(hook.secret)));
        let url = wish
            .url
            .or(old_url)
            .ok_or_else(|| Refusal::missing("Hook", "url"))?;
        change.state.hook = Some(Hook {
            url,
            secret: wish.secret.or(old_secret).unwrap_or_default(),
        });
        Ok(())
    })?;
    config(call).await
}

pub(crate) async fn list(call: Call) -> Answer {
    call.caller.require_app()?;
    let per_page = call
        .query("per_page")
        .and_then(|text| text.parse().ok())
        .unwrap_or(30);
    let per_page = std::cmp::Ord::clamp(per_page, 1, MOST_PER_PAGE);
    let from: u64 = call
        .query("cursor")
        .and_then(|text| text.parse().ok())
        .unwrap_or(u64::MAX);
    let mut deliveries: Vec<Delivery> = call
        .site
        .hooks
        .list()
        .into_iter()
        .filter(|delivery| delivery.id <= from)
        .collect();
    let next = deliveries.get(per_page).map(|delivery| delivery.id.to_string());
    deliveries.truncate(per_page);
    let shown: Vec<Value> = deliveries.iter().map(summary).collect();
    let mut response = answer::json(StatusCode::OK, &Value::Array(shown));
    if let Some(next) = next {
        let url = call.url_with(&[("cursor", &next)]);
        set(&mut response, LINK, &format!("<{url}>; rel=\"next\""));
    }
    Ok(response)
}

pub(crate) async fn show(call: Call, Path(id): Path<u64>) -> Answer {
    call.caller.require_app()?;
    let delivery = call.site.hooks.get(id).ok_or_else(Refusal::not_found)?;
    let mut shown = summary(&delivery);
    shown["url"] = json!(delivery.url);
    shown["request"] = json!({
        "headers": { "X-GitHub-Event": delivery.event, "X-GitHub-Delivery": delivery.guid },
        "payload": hook::shown_payload(&delivery),
    });
    shown["response"] = json!({ "headers": {}, "payload": "" });
    answer::ok(&shown)
}

pub(crate) async fn redeliver(call: Call, Path(id): Path<u64>) -> Answer {
    call.caller.require_app()?;
    call.site.hooks.redeliver(id, call.site.clock.now())?;
    Ok(answer::json(StatusCode::ACCEPTED, &json!({})))
}

fn summary(delivery: &Delivery) -> Value {
    json!({
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": delivery.delivered_at,
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": null,
    })
}
