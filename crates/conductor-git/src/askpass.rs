//! Answers git's question for a user name and a token, for the configured host only (S-12).
//!
//! The token waits in a FIFO in a private directory: it stands in no argument, no address, no environment variable
//! and no file content. The script that git starts compares the question with the two that the configured host
//! can cause; for any other host it answers nothing and fails.
//!
//! This module does not know what the token permits.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use conductor_port::workspace::GitToken;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::address::Address;
use crate::call::Protocol;
use crate::error::Error;
use crate::layout::make_temporary;

/// The user name under which the server expects an installation token.
const USER: &str = "x-access-token";

/// How often one git process may ask; it normally asks once.
const ANSWERS: usize = 4;

/// The means by which one git call gets its credentials.
pub(crate) struct Askpass {
    directory: tempfile::TempDir,
    program: PathBuf,
    token: GitToken,
    _answers: File,
}

impl Askpass {
    /// Prepares the answers for `address`; none are needed for files.
    pub(crate) fn prepare(
        parent: &Path,
        address: &Address,
        token: Option<&GitToken>,
    ) -> Result<Option<Self>, Error> {
        let (Some(token), Protocol::Https | Protocol::Http) = (token, address.protocol()) else {
            return Ok(None);
        };
        let secret = token.0.as_str();
        if secret.is_empty() || secret.len() > 4096 || secret.chars().any(char::is_control) {
            return Err(Error::AccessRefused {
                host: address.host().to_owned(),
                detail: "the token is empty, too long or holds control characters".to_owned(),
            });
        }
        let directory = make_temporary(parent, "askpass-")?;
        let program = directory.path().join("askpass");
        let fifo = directory.path().join("answers");
        let prepare = || -> io::Result<File> {
            fs::write(&program, script(address))?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
            mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR)?;
            // Opened for both directions, so that neither side waits for the other; all answers fit into it.
            let mut answers = File::options().read(true).write(true).open(&fifo)?;
            answers.write_all(format!("{secret}\n").repeat(ANSWERS).as_bytes())?;
            Ok(answers)
        };
        let answers = prepare().map_err(|e| Error::io("prepare the credentials in", directory.path(), e))?;
        Ok(Some(Self {
            directory,
            program,
            token: token.clone(),
            _answers: answers,
        }))
    }

    /// The program that git starts with its question.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Takes the token out of a text; a server may echo what it was sent.
    pub(crate) fn redact(&self, text: &str) -> String {
        let token = self.token.0.as_str();
        let basic = base64(format!("{USER}:{token}").as_bytes());
        text.replace(token, "***").replace(&basic, "***")
    }
}

impl std::fmt::Debug for Askpass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Askpass")
            .field("directory", &self.directory.path())
            .finish_non_exhaustive()
    }
}

/// Every part of the questions comes from the checked alphabet of [`Address`], so plain quotes hold.
fn script(address: &Address) -> String {
    let (scheme, host) = (address.protocol().scheme(), address.host());
    format!(
        r#"#!/bin/sh
case "$1" in
  "Username for '{scheme}://{host}': ") printf '%s\n' '{USER}' ;;
  "Password for '{scheme}://{USER}@{host}': ") IFS= read -r token <"${{0%/*}}/answers" && printf '%s\n' "$token" ;;
  *) exit 1 ;;
esac
"#
    )
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(
        clippy::disallowed_methods,
        reason = "plays git's part, which asks the script"
    )]
    fn ask(askpass: &Askpass, question: &str) -> (Option<i32>, String) {
        let asked = std::process::Command::new(askpass.program())
            .arg(question)
            .env_clear()
            .output()
            .unwrap();
        (asked.status.code(), String::from_utf8(asked.stdout).unwrap())
    }

    fn prepare(parent: &Path) -> Askpass {
        let address = Address::parse("https://git.example:8443/o/n").unwrap();
        Askpass::prepare(parent, &address, Some(&GitToken("s3cret".to_owned())))
            .unwrap()
            .unwrap()
    }

    /// S-12: the right question gets the token, every other gets nothing.
    #[test]
    fn only_the_configured_host_gets_an_answer() {
        let place = tempfile::tempdir().unwrap();
        let askpass = prepare(place.path());
        assert_eq!(
            ask(&askpass, "Username for 'https://git.example:8443': "),
            (Some(0), "x-access-token\n".into())
        );
        let password = "Password for 'https://x-access-token@git.example:8443': ";
        assert_eq!(ask(&askpass, password), (Some(0), "s3cret\n".into()));
        for other in [
            "Password for 'https://x-access-token@git.example': ",
            "Password for 'http://x-access-token@git.example:8443': ",
            "Password for 'https://x-access-token@evil.example': ",
            "Password for 'https://x-access-token@git.example:8443.evil.example': ",
            "Password for 'https://someone@git.example:8443': ",
            "Password: ",
            "",
        ] {
            assert_eq!(ask(&askpass, other), (Some(1), String::new()), "{other:?}");
        }
    }

    /// S-12: the token lies in no file; the directory is the owner's alone and ends with the call.
    #[test]
    fn the_token_is_in_no_file_and_no_text() {
        let place = tempfile::tempdir().unwrap();
        let askpass = prepare(place.path());
        let directory = askpass.directory.path().to_owned();
        assert_eq!(
            fs::metadata(&directory).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(!fs::read_to_string(askpass.program()).unwrap().contains("s3cret"));
        assert!(!format!("{askpass:?}").contains("s3cret"));
        let basic = base64(b"x-access-token:s3cret");
        assert_eq!(
            askpass.redact(&format!("remote: s3cret {basic}")),
            "remote: *** ***"
        );
        drop(askpass);
        assert!(!directory.exists());
    }

    /// A token with a line break would answer the next question too.
    #[test]
    fn a_token_that_is_no_line_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let address = Address::parse("https://git.example/o/n").unwrap();
        for bad in ["", "a\nb", "a\0b", &"x".repeat(5000)] {
            let refused = Askpass::prepare(place.path(), &address, Some(&GitToken(bad.to_owned())));
            assert!(matches!(refused, Err(Error::AccessRefused { .. })), "{bad:?}");
        }
    }
}
