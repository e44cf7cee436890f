//! What the name of a value says about it: that it is a password, a key that opens something, or neither.
//!
//! It knows words, not what is assigned to them: see `named`.

/// What the name of a secret ends in, written without separators.
const ENDS: [&str; 31] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "encryptionkey",
    "signingkey",
    "licensekey",
    "appkey",
    "accountkey",
    "storagekey",
    "masterkey",
    "sharedkey",
    "cakey",
    "applicationkey",
    "subscriptionkey",
    "credential",
    "credentials",
    "secretkeybase",
    "smtppass",
    "dbpass",
    "userpass",
    "becomepass",
    "sessionkey",
];

/// Last words that name a secret only when they stand alone.
const LAST_WORDS: [&str; 4] = ["pass", "auth", "pat", "login"];

/// What may follow the name of a secret without making it another thing.
const TAILS: [&str; 10] = [
    "prod",
    "production",
    "dev",
    "staging",
    "old",
    "new",
    "value",
    "default",
    "base64",
    "plain",
];

/// What makes a token one of a text or of a list.
const OTHER_TOKENS: [&str; 16] = [
    "next",
    "page",
    "nextpage",
    "continuation",
    "pad",
    "bos",
    "eos",
    "unk",
    "sep",
    "cls",
    "mask",
    "cancellation",
    "cancel",
    "sync",
    "stop",
    "special",
];

/// What makes a key the name of a thing, or the half of a pair that everybody may have.
const OTHER_KEYS: [&str; 34] = [
    "public",
    "pub",
    "publishable",
    "site",
    "host",
    "verification",
    "verify",
    "idempotency",
    "dedup",
    "deduplication",
    "partition",
    "shard",
    "cache",
    "primary",
    "foreign",
    "unique",
    "lookup",
    "index",
    "sort",
    "range",
    "hash",
    "row",
    "group",
    "map",
    "object",
    "file",
    "blob",
    "s3",
    "path",
    "image",
    "routing",
    "message",
    "socket",
    "websocket",
];

/// What a password is called.
pub(super) const PASSWORD: &str = "password";
/// What the name of a secret says.
pub(super) struct Name {
    pub(super) kind: &'static str,
    pub(super) end: NameEnd,
    /// One of the four words that leave no doubt; their values are redacted even when they are words.
    pub(super) is_plain: bool,
    /// A function that takes the secret itself.
    pub(super) is_call: bool,
}

pub(super) enum NameEnd {
    Secret,
    /// The key of something.
    Key,
    /// A key, and nobody says of what; digests are called so, too.
    BareKey,
    Auth,
    Login,
}

impl Name {
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?.trim_end_matches(['-', '_']);
        let kept = without_tail(name);
        let (last, before) = kept.split_last()?;
        let joined = kept.concat();
        if last == "token"
            && before
                .last()
                .is_some_and(|word| OTHER_TOKENS.contains(&word.as_str()))
        {
            return None;
        }
        let end = match last.as_str() {
            "auth" | "authorization" => NameEnd::Auth,
            "login" => NameEnd::Login,
            _ if LAST_WORDS.contains(&last.as_str()) || ENDS.iter().any(|end| joined.ends_with(end)) => {
                NameEnd::Secret
            }
            "key" => match before.last() {
                None => NameEnd::BareKey,
                Some(word) if OTHER_KEYS.contains(&word.as_str()) => return None,
                Some(_) => NameEnd::Key,
            },
            _ => return None,
        };
        let is_password = ["password", "passwd", "pwd", "pass", "passphrase"]
            .iter()
            .any(|word| joined.ends_with(word));
        Some(Self {
            kind: if is_password { PASSWORD } else { "assigned-secret" },
            end,
            is_plain: ["password", "passwd", "secret", "token"]
                .iter()
                .any(|word| joined.ends_with(word)),
            is_call: last == "login" || (before.first().is_some_and(|word| word == "set")),
        })
    }
}

/// Takes a name apart and leaves out what only says which one it is: a stage, a form, a letter, a number.
fn without_tail(name: &str) -> Vec<String> {
    let is_tail = |word: &str| TAILS.contains(&word);
    let mut words = words_of(name);
    if !words.last().is_some_and(|last| is_tail(last)) {
        words = words_of(name.trim_end_matches(|c: char| c.is_ascii_digit()));
    }
    let ends_in_tail = words.last().is_some_and(|last| is_tail(last) || last.len() == 1);
    if ends_in_tail {
        words.pop();
    }
    words
}

/// Takes a name apart: at separators, and where a capital follows a small letter.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_small = false;
    for letter in name.chars() {
        let begins = letter.is_ascii_uppercase() && before_is_small;
        before_is_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if begins || !letter.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_around_them() {
        for name in [
            "password",
            "DB_PASSWORD",
            "PGPASSWORD",
            "postgresqlPassword",
            "clientSecret",
            "X-Api-Key",
            "apiKey",
            "secret_key_base",
            "spring.datasource.password",
            "API_TOKEN_PROD",
            "password1",
            "smtp_pass",
            "_auth",
            "AccountKey",
            "DD_APP_KEY",
            "key",
            "STRIPE_KEY",
            "tokenA",
            "ENCRYPTION_KEY_BASE64",
        ] {
            assert!(Name::parse(name.as_bytes()).is_some(), "{name}");
        }
        for name in [
            "tokens",
            "tokenizer",
            "token_url",
            "PASSWORD_MIN_LENGTH",
            "public_key",
            "cacheKey",
            "primary_key",
            "password_hash",
            "passwordResetUrl",
            "bypass",
            "compass",
            "secretName",
            "nextPageToken",
            "pad_token",
            "idempotency_key",
            "author",
            "monkey",
        ] {
            assert!(Name::parse(name.as_bytes()).is_none(), "{name}");
        }
    }
}
