//! The tools that the public conformance suite calls by name, on the server that serves ours.

use async_trait::async_trait;
use conductor_tools::Shelf;
use conductor_tools::server::Progress;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool};
use serde_json::{Value, json};

/// One pixel, as PNG.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// No sound, as WAV.
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// Serves the fixtures.
#[derive(Debug)]
pub(crate) struct Fixtures;

fn object(value: Value) -> JsonObject {
    let object = value.as_object();
    object.expect("an object").clone()
}

#[async_trait]
impl Shelf for Fixtures {
    fn tools(&self) -> Vec<Tool> {
        let nothing = || object(json!({ "type": "object", "properties": {} }));
        let mut tools: Vec<Tool> = [
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
            "test_tool_with_progress",
            "test_error_handling",
        ]
        .into_iter()
        .map(|name| Tool::new(name, "A fixture.", nothing()))
        .collect();
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                }
            },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
            "additionalProperties": false,
        });
        tools.push(Tool::new(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            object(schema),
        ));
        tools
    }

    async fn call(&self, name: &str, _arguments: JsonObject, progress: &Progress) -> Option<CallToolResult> {
        let resource = |mime: &str, text: &str| {
            ContentBlock::resource(ResourceContents::TextResourceContents {
                uri: "test://embedded-resource".into(),
                mime_type: Some(mime.into()),
                text: text.into(),
                meta: None,
            })
        };
        let image = || ContentBlock::image(PIXEL, "image/png");
        Some(CallToolResult::success(match name {
            "test_simple_text" => vec![ContentBlock::text("This is a simple text response for testing.")],
            "test_image_content" => vec![image()],
            "test_audio_content" => vec![ContentBlock::audio(SILENCE, "audio/wav")],
            "test_embedded_resource" => vec![resource("text/plain", "This is an embedded resource content.")],
            "test_multiple_content_types" => vec![
                ContentBlock::text("Multiple content types test:"),
                image(),
                resource("application/json", "{\"test\":\"data\",\"value\":123}"),
            ],
            "test_tool_with_progress" => {
                for done in [0, 50, 100] {
                    progress.tell(done, 100).await;
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                vec![ContentBlock::text("done")]
            }
            "json_schema_2020_12_tool" => vec![ContentBlock::text("ok")],
            "test_error_handling" => {
                return Some(CallToolResult::error(vec![ContentBlock::text(
                    "This tool intentionally returns an error for testing",
                )]));
            }
            _ => return None,
        }))
    }

    async fn misfit(&self, _parameters: Value, _reason: &str) -> Option<CallToolResult> {
        None
    }
}
