//! Takes secrets out of text: those it was told, word for word, and those it knows by their form (SEC-3).
//!
//! Used where text comes in, is kept, is shown live, or goes out. What it leaves is marked. What a secret looks like
//! is the policy crate's to know. This module does not know where a text goes.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_policy::redact::{Redactor, Stream};
use conductor_policy::secret::live::LiveSecrets;
use conductor_port::blobs::{Blobs, KeptBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use conductor_domain::fault::Fault;

/// Takes secrets out of text. If repeated: nothing more changes.
pub trait Redact: Send + Sync + std::fmt::Debug {
    /// Returns the text without its secrets.
    fn redact(&self, text: &str) -> String;

    /// Begins a text that comes in pieces; a secret is taken out wherever they are cut.
    fn passing(&self) -> Box<dyn Passing + '_>;
}

/// A text that passes in pieces.
pub trait Passing: Send + std::fmt::Debug {
    /// Takes a piece and returns what can be shown by now.
    fn push(&mut self, text: &str) -> String;

    /// Returns what was held back, though more may come. The rest of a secret that was found stays out.
    fn flush(&mut self) -> String;
}

/// Redacts every text inside a value; names of fields and kinds are ours and stay.
pub fn redact_value<T: Serialize + DeserializeOwned>(redactor: &dyn Redact, value: &T) -> Result<T, Fault> {
    let cannot = |error: serde_json::Error| {
        Fault::permanent(format!(
            "cannot redact: a secret stands where only a name or an id can stand ({error})"
        ))
    };
    let mut tree = serde_json::to_value(value).map_err(cannot)?;
    redact_tree(redactor, &mut tree);
    serde_json::from_value(tree).map_err(cannot)
}

/// Redacts every text inside a tree.
pub(crate) fn redact_tree(redactor: &dyn Redact, tree: &mut Value) {
    match tree {
        Value::String(text) => *text = redactor.redact(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_tree(redactor, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact_tree(redactor, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Keeps what doors hand in, redacted before it is kept: the part of intake that concerns bytes (SEC-3).
///
/// A scenario is the operator's own script and must stay as it is, because its address is what is played.
#[derive(Debug)]
pub struct RedactedBlobs {
    blobs: Arc<dyn Blobs>,
    redactor: Arc<dyn Redact>,
}

impl RedactedBlobs {
    /// Puts a redactor before a store.
    pub fn new(blobs: Arc<dyn Blobs>, redactor: Arc<dyn Redact>) -> Self {
        Self { blobs, redactor }
    }
}

#[async_trait]
impl Blobs for RedactedBlobs {
    async fn put(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Artifact, Fault> {
        if kind == ArtifactKind::Scenario {
            return self.blobs.put(kind, bytes).await;
        }
        let text = self.redactor.redact(&String::from_utf8_lossy(bytes));
        self.blobs.put(kind, text.as_bytes()).await
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
        self.blobs.get(digest).await
    }

    async fn list(&self, after: &str, limit: u32) -> Result<Vec<KeptBytes>, Fault> {
        self.blobs.list(after, limit).await
    }
}

/// Knows secrets by heart and common tokens by their form.
#[derive(Debug)]
pub struct KnownForms(Redactor);

impl KnownForms {
    /// Makes a redactor that also knows these secrets; ones shorter than eight bytes are left out.
    pub fn with_secrets(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets: Vec<String> = secrets.into_iter().collect();
        Self(Redactor::new(LiveSecrets::new(
            secrets.iter().map(String::as_str),
        )))
    }
}

impl Default for KnownForms {
    fn default() -> Self {
        Self::with_secrets([])
    }
}

impl Redact for KnownForms {
    fn redact(&self, text: &str) -> String {
        self.0.redact(text)
    }

    fn passing(&self) -> Box<dyn Passing + '_> {
        Box::new(PassingForms {
            stream: self.0.stream(),
            torn: Vec::new(),
        })
    }
}

#[derive(Debug)]
struct PassingForms<'a> {
    stream: Stream<'a>,
    /// The beginning of a character whose end is still held back.
    torn: Vec<u8>,
}

impl PassingForms<'_> {
    /// Makes text of bytes; a line without end may be let out in the middle of a character.
    fn text(&mut self, bytes: Vec<u8>) -> String {
        let mut all = std::mem::take(&mut self.torn);
        all.extend(bytes);
        if let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.torn = all.split_off(error.valid_up_to());
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

impl Passing for PassingForms<'_> {
    fn push(&mut self, text: &str) -> String {
        let shown = self.stream.push(text.as_bytes());
        self.text(shown)
    }

    fn flush(&mut self) -> String {
        let shown = self.stream.flush();
        self.text(shown)
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::{EffectId, RunId};
    use conductor_domain::input::Input;

    use super::*;

    fn redact(text: &str) -> String {
        KnownForms::with_secrets([
            "hunter2-hunter2".to_owned(),
            "hunter2-hunter2-long".to_owned(),
            "short".to_owned(),
        ])
        .redact(text)
    }

    /// SEC-3.
    #[test]
    fn secrets_go_and_words_stay() {
        let jwt = format!("eyJ{}.{}.{}", "a".repeat(20), "b".repeat(20), "c-_".repeat(8));
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        for (text, expected) in [
            ("x hunter2-hunter2-long y".to_owned(), "x [redacted] y"),
            ("a short word stays".to_owned(), "a short word stays"),
            ("DB_PASSWORD=s3same&x=1".to_owned(), "DB_PASSWORD=[redacted]&x=1"),
            ("passwd:öffnen, then".to_owned(), "passwd:[redacted], then"),
            (
                "{\"clientSecret\": \"sesame\"}".to_owned(),
                "{\"clientSecret\": \"[redacted]\"}",
            ),
            (
                "token='opensesame' secret=open-sesame".to_owned(),
                "token='[redacted]' secret=[redacted]",
            ),
            ("password: s3same!".to_owned(), "password: [redacted]"),
            (
                "token=short secret: nothing token: String, tokens=1234567 token=${TOKEN} token==other"
                    .to_owned(),
                "token=short secret: nothing token: String, tokens=1234567 token=${TOKEN} token==other",
            ),
            (
                format!("secret:sha256:{} run r-secret-token:", "a1".repeat(32)),
                &format!("secret:sha256:{} run r-secret-token:", "a1".repeat(32)),
            ),
            (
                format!("token={}ghp_", ["ghp_", &"a1".repeat(18)].concat()),
                "token=[redacted]",
            ),
            (
                ["\"", "github_pat_", &"A_1".repeat(10), "\""].concat(),
                "\"[redacted]\"",
            ),
            (["é", "sk-ant-", &"x-".repeat(10), "é"].concat(), "é[redacted]é"),
            (["AKIA", &"Q".repeat(16)].concat(), "[redacted]"),
            (format!("Bearer {jwt}."), "Bearer [redacted]"),
            (format!("k: {key} after"), "k: [redacted] after"),
            (
                "-----BEGIN PRIVATE KEY-----\nMIIE no end".to_owned(),
                "[redacted]",
            ),
            (
                "https://me:pass@host/x".to_owned(),
                "https://me:[redacted]@host/x",
            ),
            (
                "https://host/x?a:b@c and mailto:a@b".to_owned(),
                "https://host/x?a:b@c and mailto:a@b",
            ),
            (
                "task-ghp_short risk-ask-me skeleton sha256:abc".to_owned(),
                "task-ghp_short risk-ask-me skeleton sha256:abc",
            ),
        ] {
            let once = redact(&text);
            assert!(
                once == expected || once == format!("{expected}."),
                "{text:?} became {once:?}"
            );
            assert_eq!(redact(&once), once, "redaction is stable");
        }
    }

    /// SEC-3, RUN-3: whatever the text, the input comes back as the same kind of input, without the secret.
    #[test]
    fn hostile_text_breaks_neither_the_input_nor_its_redaction() {
        let run = RunId::parse("r-1").expect("a slug");
        for hostile in [
            "\"}, {\"input\":\"start_run\"",
            "\u{0}\u{202e}\\",
            "[redacted]",
            "\"",
            "💥hunter2-hunter2💥",
            "",
        ] {
            let input = Input::Faulted {
                effect: EffectId::derive(&run, 1, 0),
                attempt: 1,
                fault: Fault::transient(format!("{hostile} hunter2-hunter2 {hostile}")),
                remains: None,
            };
            let redactor = KnownForms::with_secrets(["hunter2-hunter2".to_owned()]);
            let redacted = redact_value(&redactor, &input).expect("text can always be redacted");
            let expected = redactor.redact(&format!("{hostile} hunter2-hunter2 {hostile}"));
            assert!(!expected.contains("hunter2"));
            assert_eq!(
                redacted,
                Input::Faulted {
                    effect: EffectId::derive(&run, 1, 0),
                    attempt: 1,
                    fault: Fault::transient(expected),
                    remains: None,
                }
            );
        }
    }

    #[test]
    fn a_secret_in_the_place_of_an_id_is_refused_and_not_kept() {
        let secret = "s3cret-value-as-id";
        let run = RunId::parse(secret).expect("a slug");
        let input = Input::Faulted {
            effect: EffectId::derive(&run, 1, 0),
            attempt: 1,
            fault: Fault::conflict("x"),
            remains: None,
        };
        let fault = redact_value(&KnownForms::with_secrets([secret.to_owned()]), &input)
            .expect_err("not an id any more");
        assert!(!fault.what.contains(secret), "{fault}");
    }
}
