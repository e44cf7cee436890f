//! Says no the way GitHub does: one status and one body per reason.
//!
//! It knows neither HTTP types nor who asked; `answer` turns a refusal into a response.

use serde_json::{Value, json};

const DOCUMENTATION: &str = "https://docs.github.com/rest";

/// A refused request or control act.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    #[error("bad request: {0}")]
    BadRequest(String),
    #[error("unauthorized: {0}")]
    Unauthorized(String),
    #[error("forbidden: {0}")]
    Forbidden(String),
    #[error("not found: {0}")]
    NotFound(String),
    #[error("not mergeable: {0}")]
    NotMergeable(String),
    #[error("conflict: {0}")]
    Conflict(String),
    #[error("gone: {0}")]
    Gone(String),
    #[error("moved to {location}")]
    Moved { location: String },
    #[error("invalid {resource}.{field} ({code}): {message}")]
    Invalid {
        resource: &'static str,
        field: &'static str,
        code: &'static str,
        message: String,
    },
    #[error("unprocessable: {0}")]
    Unprocessable(String),
    /// The forge itself failed, for example its disk or git.
    #[error("the forge failed: {0}")]
    Broken(String),
}

impl Refusal {
    pub(crate) fn not_found() -> Self {
        Self::NotFound("Not Found".into())
    }

    pub(crate) fn inaccessible() -> Self {
        Self::Forbidden("Resource not accessible by integration".into())
    }

    pub(crate) fn missing(resource: &'static str, field: &'static str) -> Self {
        Self::Invalid {
            resource,
            field,
            code: "missing_field",
            message: format!("{field} is missing"),
        }
    }

    pub(crate) fn invalid(resource: &'static str, field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid {
            resource,
            field,
            code: "invalid",
            message: message.into(),
        }
    }

    pub(crate) fn custom(resource: &'static str, field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid {
            resource,
            field,
            code: "custom",
            message: message.into(),
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            Self::Moved { .. } => 301,
            Self::BadRequest(_) => 400,
            Self::Unauthorized(_) => 401,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::NotMergeable(_) => 405,
            Self::Conflict(_) => 409,
            Self::Gone(_) => 410,
            Self::Invalid { .. } | Self::Unprocessable(_) => 422,
            Self::Broken(_) => 500,
        }
    }

    pub(crate) fn body(&self) -> Value {
        let status = self.status().to_string();
        match self {
            Self::BadRequest(message)
            | Self::Unauthorized(message)
            | Self::Forbidden(message)
            | Self::NotFound(message)
            | Self::NotMergeable(message)
            | Self::Conflict(message)
            | Self::Gone(message)
            | Self::Unprocessable(message) => {
                json!({ "message": message, "documentation_url": DOCUMENTATION, "status": status })
            }
            Self::Moved { location } => {
                json!({ "message": "Moved Permanently", "url": location, "documentation_url": DOCUMENTATION })
            }
            Self::Invalid {
                resource,
                field,
                code,
                message,
            } => json!({
                "message": "Validation Failed",
                "errors": [{ "resource": resource, "field": field, "code": code, "message": message }],
                "documentation_url": DOCUMENTATION,
                "status": status,
            }),
            Self::Broken(_) => {
                json!({ "message": "Server Error", "documentation_url": DOCUMENTATION, "status": status })
            }
        }
    }
}
