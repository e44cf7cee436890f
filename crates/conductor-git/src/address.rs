//! Parses clone addresses; what is not plainly `scheme://host/owner/name` is refused.
//!
//! The address is the operator's, but it becomes a directory name, a git argument and the host that may see a
//! token, so each part has its own alphabet. This module does not know whether anything answers there.

use crate::call::Protocol;
use crate::error::Error;

/// A checked clone address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    url: String,
    protocol: Protocol,
    host: String,
    key: String,
}

impl Address {
    /// Parses `https://host[:port]/owner/name[.git]`, or the same with `http`, or `file:///path/owner/name[.git]`.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = |reason| Error::InvalidAddress {
            given: without_userinfo(url),
            reason,
        };
        let (protocol, rest) = [Protocol::Https, Protocol::Http, Protocol::File]
            .into_iter()
            .find_map(|p| Some((p, url.strip_prefix(p.scheme())?.strip_prefix("://")?)))
            .ok_or_else(|| refuse("its scheme is not https, http or file"))?;
        let (host, path) = rest.split_once('/').ok_or_else(|| refuse("it has no path"))?;
        if host.contains('@') {
            return Err(refuse("it carries credentials"));
        }
        let is_host = |h: &str| {
            !h.is_empty()
                && !h.starts_with(['-', '.', ':'])
                && h.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.:".contains(&b))
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let path = path.strip_suffix(".git").unwrap_or(path);
        let mut parts = path.rsplitn(3, '/');
        let (name, owner, above) = (parts.next(), parts.next(), parts.next());
        let (Some(name), Some(owner)) = (name, owner) else {
            return Err(refuse("its path is not owner/name"));
        };
        if !is_part(name) || !is_part(owner) {
            return Err(refuse("owner and name are letters, digits, `-`, `_` and `.`"));
        }
        let directory = match protocol {
            Protocol::Https | Protocol::Http if !is_host(host) => {
                return Err(refuse(
                    "the host is lowercase letters, digits, `-`, `.` and a port",
                ));
            }
            Protocol::Https | Protocol::Http if above.is_some() => {
                return Err(refuse("its path is not owner/name"));
            }
            // A colon would end the entry in a list of alternates.
            Protocol::Https | Protocol::Http => host.replace(':', "_"),
            Protocol::File if !host.is_empty() => return Err(refuse("a file address has no host")),
            Protocol::File if url.chars().any(char::is_control) => {
                return Err(refuse("it holds control characters"));
            }
            Protocol::File => "localhost".to_owned(),
        };
        let key = format!("{directory}/{owner}/{name}");
        Ok(Self {
            url: url.to_owned(),
            protocol,
            host: host.to_owned(),
            key,
        })
    }

    /// The address as it was configured.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How the server is spoken to.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Host and port, as git prints them in its questions.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// `host/owner/name`, fit for a path.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

fn is_part(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= 100
        && !part.starts_with(['-', '.'])
        && part
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn without_userinfo(url: &str) -> String {
    let end = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(end);
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}***{}", &rest[at..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-2, S-12: an address never becomes an option, a path outside the data directory or a hidden credential.
    #[test]
    fn hostile_addresses_are_refused_without_showing_credentials() {
        for bad in [
            "",
            "ext::sh -c id",
            "--upload-pack=id",
            "ssh://github.com/o/n",
            "https://github.com",
            "https://github.com/o",
            "https://github.com/a/b/c",
            "https://github.com/../n",
            "https://github.com/o/..",
            "https://github.com/o/.git",
            "https://github.com/o/-n",
            "https://-x/o/n",
            "https://GitHub.com/o/n",
            "https://github.com/o/n?x=1",
            "https://github.com/o/n\n",
            "https:///o/n",
            "file://host/o/n",
            "file:///a\n/o/n",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad:?}");
        }
        let error = Address::parse("https://user:s3cret@github.com/o/n").expect_err("credentials");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn an_address_names_its_directory() {
        for (url, host, key) in [
            (
                "https://github.com/octo/hello.git",
                "github.com",
                "github.com/octo/hello",
            ),
            (
                "http://127.0.0.1:3000/o/n",
                "127.0.0.1:3000",
                "127.0.0.1_3000/o/n",
            ),
            ("file:///srv/git/o/n.git", "", "localhost/o/n"),
        ] {
            let address = Address::parse(url).expect(url);
            assert_eq!((address.url(), address.host(), address.key()), (url, host, key));
        }
    }
}
