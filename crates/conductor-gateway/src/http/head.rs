//! Reads the head of a request or an answer, and decides how its body is framed.
//!
//! `httparse` knows the grammar; what it forgives is refused before it looks. This module does not read from anywhere.

use super::Malformed;

const MAX_FIELDS: usize = 96;

/// One field of a head; the name in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: Vec<u8>,
}

/// HTTP/1.0 or HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Zero,
    One,
}

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    None,
    Length(u64),
    Chunked,
    /// Only in answers.
    UntilEnd,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Body,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Body,
}

impl Request {
    /// Reads the head of a request, its final empty line included.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, Malformed> {
        strict_lines(head)?;
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        whole(request.parse(head), head)?;
        let version = version(request.version)?;
        let fields = owned(request.headers)?;
        let target = request.path.unwrap_or_default();
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Malformed::Grammar("a target of other than visible characters"));
        }
        if has(&fields, "upgrade") {
            return Err(Malformed::Grammar("an upgrade"));
        }
        let body = declared(&fields, version)?.unwrap_or(Body::None);
        Ok(Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: target.to_owned(),
            version,
            fields,
            body,
        })
    }

    /// Tells whether the sender wants to go on with this connection.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.version == Version::One
            && !["connection", "proxy-connection"]
                .iter()
                .any(|name| lists(&self.fields, name, "close"))
    }
}

impl Response {
    /// Reads the head of the answer to a request with this method.
    pub(crate) fn parse(head: &[u8], method: &str) -> Result<Self, Malformed> {
        strict_lines(head)?;
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        whole(response.parse(head), head)?;
        let version = version(response.version)?;
        let fields = owned(response.headers)?;
        let status = response.code.unwrap_or_default();
        let declared = declared(&fields, version)?;
        let body = match status {
            _ if method == "HEAD" => Body::None,
            100..200 | 204 | 304 => Body::None,
            _ => declared.unwrap_or(Body::UntilEnd),
        };
        Ok(Self { status, fields, body })
    }
}

/// Refuses what the parser forgives: lone line ends, folded fields, empty lines before the first.
fn strict_lines(head: &[u8]) -> Result<(), Malformed> {
    let mut before = 0;
    for (at, byte) in head.iter().enumerate() {
        let next = head.get(at + 1).copied();
        match byte {
            0 => return Err(Malformed::Grammar("a zero byte")),
            b'\n' if before != b'\r' => return Err(Malformed::Grammar("a lone line feed")),
            b'\n' if matches!(next, Some(b' ' | b'\t')) => return Err(Malformed::Grammar("a folded field")),
            b'\r' if next != Some(b'\n') => return Err(Malformed::Grammar("a lone carriage return")),
            _ => before = *byte,
        }
    }
    if head.first().is_none_or(|byte| !byte.is_ascii_graphic()) {
        return Err(Malformed::Grammar("no first line"));
    }
    Ok(())
}

fn whole(parsed: httparse::Result<usize>, head: &[u8]) -> Result<(), Malformed> {
    match parsed {
        Ok(httparse::Status::Complete(used)) if used == head.len() => Ok(()),
        Err(httparse::Error::TooManyHeaders) => Err(Malformed::TooLong),
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => {
            Err(Malformed::Grammar("not the head of a message"))
        }
    }
}

fn version(minor: Option<u8>) -> Result<Version, Malformed> {
    match minor {
        Some(0) => Ok(Version::Zero),
        Some(1) => Ok(Version::One),
        Some(_) | None => Err(Malformed::Grammar("an unknown version")),
    }
}

fn owned(fields: &[httparse::Header<'_>]) -> Result<Vec<Field>, Malformed> {
    fields
        .iter()
        .map(|field| {
            // Some readers take an underscore for a hyphen; then a field that we pass on would be one that we check.
            if !field
                .name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            {
                return Err(Malformed::Grammar(
                    "a field name of other than letters, digits and hyphens",
                ));
            }
            Ok(Field {
                name: field.name.to_ascii_lowercase(),
                value: field.value.to_vec(),
            })
        })
        .collect()
}

fn has(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| field.name == name)
}

/// Tells whether a field of comma-separated words has this word.
fn lists(fields: &[Field], name: &str, word: &str) -> bool {
    fields
        .iter()
        .filter(|field| field.name == name)
        .flat_map(|field| field.value.split(|byte| *byte == b','))
        .any(|found| found.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// Decides how the body is framed, if the fields say so; what could be read in two ways is refused.
fn declared(fields: &[Field], version: Version) -> Result<Option<Body>, Malformed> {
    let values = |name: &str| -> Vec<&[u8]> {
        fields
            .iter()
            .filter(|field| field.name == name)
            .map(|field| field.value.as_slice())
            .collect()
    };
    match (
        values("content-length").as_slice(),
        values("transfer-encoding").as_slice(),
    ) {
        ([], []) => Ok(None),
        ([length], []) => Ok(Some(Body::Length(decimal(length)?))),
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") && version == Version::One => {
            Ok(Some(Body::Chunked))
        }
        ([], _) => Err(Malformed::Grammar("a transfer encoding other than chunked")),
        (_, []) => Err(Malformed::Grammar("more than one length")),
        (_, _) => Err(Malformed::Grammar("a length beside a transfer encoding")),
    }
}

fn decimal(text: &[u8]) -> Result<u64, Malformed> {
    let digits = std::str::from_utf8(text).ok();
    digits
        .filter(|text| (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .ok_or(Malformed::Grammar("a length that is not a number"))
}
