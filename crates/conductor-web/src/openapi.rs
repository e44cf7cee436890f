//! The table of operations as an OpenAPI 3.1 document; `page` writes the same for people, as `docs/api.md`.
//!
//! Schemas come from the types on the wire, sentences from their doc comments. This module does not know what is done.

#[cfg(test)]
mod page;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::Problem;
use crate::operation::{Answers, OPERATIONS, Operation, Shape};

static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));

/// Hands the document out.
pub(crate) async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// Makes the document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let described = describe(operation, &mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = described;
    }
    let problem = generator.subschema_for::<Problem>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Conductor",
            "version": "1",
            "description": "Everything that the pages and the command line do. Times are microseconds since the epoch.",
        },
        "servers": [{ "url": "/api/v1" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "problem": {
                "description": "It was not done; the code says why, the hint what to do.",
                "content": { "application/problem+json": { "schema": problem } },
            } },
        },
    })
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let (status, answers) = (operation.answers.status(), operation.answers);
    let content = match answers {
        Answers::Ok(shape) | Answers::Created(shape) => {
            json!({ "application/json": { "schema": shape(generator) } })
        }
        Answers::Stream => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        Answers::Bytes => {
            json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } })
        }
        Answers::File(shape) => {
            let list = json!({ "type": "array", "items": shape(generator) });
            json!({ "text/csv": { "schema": { "type": "string" } }, "application/json": { "schema": list } })
        }
        Answers::Document => json!({ "application/json": { "schema": { "type": "object" } } }),
    };
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.says,
        "x-rank": operation.rank.as_str(),
        "parameters": parameters(operation, generator),
        "responses": {
            status: { "description": "Done.", "content": content },
            "default": { "$ref": "#/components/responses/problem" },
        },
    });
    if let Some(takes) = operation.takes {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": takes(generator) } },
        });
    }
    described
}

fn parameters(operation: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
    });
    let mut all: Vec<Value> = in_path.collect();
    if let Some(query) = operation.query {
        for (name, schema) in properties(query, generator) {
            all.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
        }
    }
    let header = |name: &str, says: &str| {
        json!({ "name": name, "in": "header", "required": false, "description": says,
            "schema": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" } })
    };
    if operation.changes {
        all.push(header(
            "Idempotency-Key",
            "A request with the same key and the same content is done once; its first answer is given again.",
        ));
    }
    all
}

/// The fields of a query, each with its schema.
fn properties(query: Shape, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut own = generator.settings().clone().into_generator();
    let reference = query(&mut own).to_value();
    let name = reference["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    let defined = name
        .and_then(|name| own.definitions().get(name).cloned())
        .unwrap_or(reference);
    defined["properties"].as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::fake::{Fake, request};

    /// UI-4: the page is what the code says.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test that writes the page on request")]
    fn the_page_about_the_interface_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
        if std::env::var_os("UPDATE_API").is_some() {
            std::fs::write(path, page::write()).expect("docs/ can be written to");
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page::write(),
            "docs/api.md is stale: UPDATE_API=1 writes it anew"
        );
    }

    /// UI-4: whoever reads the document finds every reference, and every operation has a name of its own.
    #[test]
    fn the_document_is_whole() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("within the document");
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
        let mut names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPERATIONS.len());
    }

    /// UI-4: the server hands the document out, behind the token like everything.
    #[tokio::test]
    async fn the_server_describes_itself() {
        let (status, found) = Fake::with_repo()
            .ask(request("GET", "/api/v1/openapi.json", ""))
            .await;
        assert_eq!(
            (status, found["openapi"].as_str()),
            (StatusCode::OK, Some("3.1.0"))
        );
        assert!(found["paths"]["/runs/{id}/actions"]["post"].is_object());
    }
}
