//! Takes secrets out of text: those it was told, word for word, and those it knows by their form (SEC-3).
//!
//! Used in three places only: intake, the live stream, and outgoing text. What it leaves is marked. The policy crate
//! will bring a richer one behind the same trait. This module does not know where a text goes.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_port::blobs::Blobs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use conductor_domain::fault::Fault;

/// What stands where a secret stood; itself never taken for one.
pub const MARK: &str = "[redacted]";

/// Takes secrets out of text. If repeated: nothing more changes.
pub trait Redact: Send + Sync + std::fmt::Debug {
    /// Returns the text without its secrets.
    fn redact(&self, text: &str) -> String;
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

fn redact_tree(redactor: &dyn Redact, tree: &mut Value) {
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
}

/// Knows secrets by heart and common tokens by their form.
#[derive(Default)]
pub struct KnownForms {
    secrets: Vec<String>,
}

impl std::fmt::Debug for KnownForms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KnownForms({} secrets)", self.secrets.len())
    }
}

/// Shorter secrets would redact ordinary words.
const SHORTEST_SECRET: usize = 8;

impl KnownForms {
    /// Makes a redactor that also knows these secrets; ones shorter than eight bytes are left out.
    pub fn with_secrets(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .collect();
        // The longest goes first, so that one secret inside another leaves no rest.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }
}

impl Redact for KnownForms {
    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MARK);
            }
        }
        redact_forms(&text)
    }
}

/// A token by its form: how it begins, how long the rest is at least, and what the rest is made of.
struct Form {
    prefix: &'static str,
    least: usize,
    rest: fn(u8) -> bool,
}

const fn form(prefix: &'static str, least: usize, rest: fn(u8) -> bool) -> Form {
    Form { prefix, least, rest }
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

const FORMS: [Form; 16] = [
    form("ghp_", 20, word),
    form("gho_", 20, word),
    form("ghu_", 20, word),
    form("ghs_", 20, word),
    form("ghr_", 20, word),
    form("github_pat_", 20, word),
    form("glpat-", 20, dashed),
    form("sk-ant-", 16, dashed),
    form("sk-proj-", 16, dashed),
    form("sk-", 32, word),
    form("xoxb-", 10, dashed),
    form("xoxp-", 10, dashed),
    form("AKIA", 16, upper),
    form("ASIA", 16, upper),
    form("AIza", 30, dashed),
    form("eyJ", 40, dotted),
];

const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "PRIVATE KEY-----";

fn redact_forms(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = secret_at(rest, after_word) {
            out.push_str(MARK);
            rest = rest.get(length..).unwrap_or_default();
            after_word = false;
            continue;
        }
        out.push(first);
        after_word = first.is_ascii_alphanumeric();
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}

/// Returns the length of the secret that `text` begins with.
fn secret_at(text: &str, after_word: bool) -> Option<usize> {
    match text.as_bytes().first()? {
        b'-' => private_key(text),
        b':' => None,
        byte if byte.is_ascii_alphabetic() && !after_word => FORMS
            .iter()
            .find_map(|form| token(text, form))
            .or_else(|| url_password(text)),
        _other => None,
    }
}

fn token(text: &str, form: &Form) -> Option<usize> {
    let rest = text.strip_prefix(form.prefix)?;
    let length = rest.bytes().take_while(|byte| (form.rest)(*byte)).count();
    let is_token =
        length >= form.least && (form.prefix != "eyJ" || rest.get(..length)?.split('.').count() >= 3);
    is_token.then_some(form.prefix.len() + length)
}

fn private_key(text: &str) -> Option<usize> {
    let after = text.strip_prefix(KEY_BEGINS)?;
    let header = after.get(..after.find('\n').unwrap_or(after.len()))?;
    if !header.contains(KEY_ENDS) {
        return None;
    }
    // A key whose end is missing is redacted to the end of the text.
    let begun = KEY_BEGINS.len() + header.len();
    let body = text.get(begun..)?;
    Some(
        body.find(KEY_ENDS)
            .map_or(text.len(), |end| begun + end + KEY_ENDS.len()),
    )
}

/// An address with `user:password@` in it is redacted up to the `@`.
fn url_password(text: &str) -> Option<usize> {
    let scheme = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let authority = text.get(scheme..)?.strip_prefix("://")?;
    let end =
        authority.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>'));
    let authority = authority.get(..end.unwrap_or(authority.len()))?;
    let at = authority.rfind('@')?;
    authority.get(..at)?.contains(':').then_some(scheme + 3 + at)
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
            ("https://me:pass@host/x".to_owned(), "[redacted]@host/x"),
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
                    fault: Fault::transient(expected)
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
        };
        let fault = redact_value(&KnownForms::with_secrets([secret.to_owned()]), &input)
            .expect_err("not an id any more");
        assert!(!fault.what.contains(secret), "{fault}");
    }
}
