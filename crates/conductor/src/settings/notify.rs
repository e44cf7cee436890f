//! Where notices go, as settings: an address, a file with the secret that signs them, and whether the address may lead
//! inside.
//!
//! This module does not know what is told.

use std::path::PathBuf;

use reqwest::Url;
use serde::Deserialize;

use super::{secret, usage};
use crate::exit::Failure;
use crate::hook::{Hook, Reach};

/// Where notices go; nowhere unless it is written down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldNotify {
    url: Option<String>,
    secret_file: Option<PathBuf>,
    /// Lets the address lead to hosts that are not public, and be plain HTTP.
    #[serde(default)]
    allow_private: bool,
}

impl ToldNotify {
    /// Reads and checks it.
    pub(crate) fn hook(&self) -> Result<Option<Hook>, Failure> {
        let wrong = |what: String| {
            let hint = "mend [notify] of conductor.toml; docs/notifications.md tells what it takes";
            usage("CDR0440", what, hint)
        };
        let (url, file) = match (&self.url, &self.secret_file) {
            (None, None) => return Ok(None),
            (Some(url), Some(file)) => (url, file),
            (Some(_), None) => {
                return Err(wrong(
                    "[notify] has no secret-file to sign notices with".to_owned(),
                ));
            }
            (None, Some(_)) => return Err(wrong("[notify] has no url to tell notices to".to_owned())),
        };
        let hook = Hook {
            url: Url::parse(url)
                .map_err(|error| wrong(format!("the url of [notify] cannot be used: {error}")))?,
            secret: secret(file)?,
            reach: if self.allow_private {
                Reach::Any
            } else {
                Reach::Public
            },
        };
        hook.check()
            .map_err(|what| wrong(format!("the url of [notify] cannot be used: {what}")))?;
        Ok(Some(hook))
    }
}
