//! Writes `docs/api.md`: the document for people.
//!
//! Only a test needs it, which fails when the page is stale. This module does not know where the page lies.

use conductor_domain::staff::Rank;
use serde_json::Value;

use super::document;
use crate::operation::OPERATIONS;

/// Writes the page about the interface.
pub(super) fn write() -> String {
    let document = document();
    let mut page = String::from(HEAD);
    for operation in OPERATIONS {
        let described = &document["paths"][operation.path][operation.method.to_lowercase()];
        page.push_str(&format!(
            "\n### `{} {}`\n\n{}\n",
            operation.method, operation.path, operation.says
        ));
        let commands: Vec<String> = operation
            .commands
            .iter()
            .map(|command| format!("`conductor {command}`"))
            .collect();
        if !commands.is_empty() {
            page.push_str(&format!("\nThe same: {}.\n", commands.join(", ")));
        }
        page.push_str(match operation.rank {
            Rank::Viewer => "\nFor everybody.\n",
            Rank::Operator => "\nFor operators and admins.\n",
            Rank::Admin => "\nFor admins.\n",
        });
        let queried: Vec<&Value> = described["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
            .collect();
        if !queried.is_empty() {
            page.push_str("\n| query | |\n| --- | --- |\n");
            for parameter in queried {
                let says = parameter["schema"]["description"].as_str().unwrap_or_default();
                page.push_str(&format!("| `{}` | {says} |\n", text(&parameter["name"])));
            }
        }
        let taken = &described["requestBody"]["content"]["application/json"]["schema"];
        if let Some(name) = name_of(taken) {
            page.push_str(&format!("\nTakes [{name}](#{}).\n", name.to_lowercase()));
        }
        let status = operation.answers.status();
        let content = &described["responses"][status]["content"];
        for (kind, content) in content.as_object().into_iter().flatten() {
            match name_of(&content["schema"]) {
                Some(name) => page.push_str(&format!(
                    "\nAnswers {status} with [{name}](#{}).\n",
                    name.to_lowercase()
                )),
                None => page.push_str(&format!("\nAnswers {status} with `{kind}`.\n")),
            }
        }
    }
    page.push_str("\n## Words\n");
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
    {
        page.push_str(&format!("\n### {name}\n\n{}\n", text(&schema["description"])));
        page.push_str(&fields(schema));
        for variant in schema["oneOf"].as_array().into_iter().flatten() {
            let tag = &variant["properties"]["action"]["const"];
            page.push_str(&format!("\n`{}`: {}\n", text(tag), text(&variant["description"])));
            page.push_str(&fields(variant));
        }
    }
    page
}

const HEAD: &str = "<!-- Made by `UPDATE_API=1 cargo nextest run -p conductor-web the_page_about_the_interface`; do not edit. -->

# The HTTP interface

Everything below `/api/v1` asks for `Authorization: Bearer <token>`: one that was issued to an operator (`conductor token
issue`), or, on the machine itself, the one in `server.json` in the data directory, which may do everything. Below each
address stands who may. `GET /api/v1/openapi.json` is the same as this page, for programs.

- **Problems** come as `application/problem+json` with a stable `code` (its page is in [docs/error](error/README.md)), a
  `detail` and a `hint`.
- **Lists** that can be long answer with `next`; given as `after`, it leads on.
- **Tags:** an answer with data carries an `ETag`; `If-None-Match` with it is answered by 304 as long as nothing changed, and
  `If-Match` on `POST /runs/{id}/actions` with the tag of `GET /runs/{id}` does nothing and answers 412 if the run is not what
  it was.
- **Repeating:** a `POST` with an `Idempotency-Key` is done once; the same request with the same key gets the first answer
  again, marked `Idempotency-Replayed: true`. Answers are kept for a day,
  also when the server is started anew; one that holds a secret, or answers a request with a password, is not kept.
- **Times** are microseconds since the epoch.

## Addresses
";

fn fields(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut table = String::from("\n| field | type | |\n| --- | --- | --- |\n");
    for (name, field) in properties {
        let optional = if required.contains(&name.as_str()) {
            ""
        } else {
            ", optional"
        };
        table.push_str(&format!(
            "| `{name}` | {}{optional} | {} |\n",
            kind(field),
            text(&field["description"])
        ));
    }
    table
}

fn kind(field: &Value) -> String {
    if let Some(name) = name_of(field) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(any) = field["anyOf"].as_array() {
        return any.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(constant) = field["const"].as_str() {
        return format!("`{constant}`");
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&field["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "anything".to_owned(),
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
