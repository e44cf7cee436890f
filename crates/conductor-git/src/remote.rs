//! Talks to the configured server: which refs it has, and what its refusals mean.
//!
//! git speaks to people, so its failures are told apart by their (untranslated) words; what is not recognised
//! stays an unnamed failure with the words in it. This module does not know what is fetched or pushed.

use std::path::Path;
use std::time::Duration;

use conductor_domain::id::CommitId;
use conductor_port::workspace::GitToken;

use crate::address::Address;
use crate::askpass::Askpass;
use crate::call::{Call, Finished, Git, Place};
use crate::error::Error;
use crate::layout::Layout;
use crate::object::commit_id;

/// How long one conversation with the server may take.
pub(crate) const NETWORK_TIME: Duration = Duration::from_mins(15);

/// A configured server, and the credentials for it.
#[derive(Debug)]
pub(crate) struct Remote<'a> {
    pub(crate) address: &'a Address,
    askpass: Option<Askpass>,
}

impl<'a> Remote<'a> {
    /// Prepares the credentials; they end with this value.
    pub(crate) fn open(
        git: &Git,
        layout: &Layout,
        address: &'a Address,
        token: Option<&GitToken>,
    ) -> Result<Self, Error> {
        if !git.allows(address.protocol()) {
            return Err(Error::InvalidAddress {
                given: address.url().to_owned(),
                reason: "its transport is not allowed here",
            });
        }
        Ok(Self {
            address,
            askpass: Askpass::prepare(layout.staging(), address, token)?,
        })
    }

    /// Lets `call` speak to this server.
    pub(crate) fn reach<'b>(&'b self, call: Call<'b>) -> Call<'b> {
        call.asking(self.askpass.as_ref()).within(NETWORK_TIME)
    }

    /// Asks where the refs that match `patterns` stand; all of them when there are none.
    pub(crate) async fn refs(
        &self,
        git: &Git,
        directory: &Path,
        patterns: &[&str],
    ) -> Result<Vec<(String, CommitId)>, Error> {
        let call = git
            .call(Place::Directory(directory), "ls-remote")
            .args(["--quiet", "--refs", "--"]);
        let finished = self
            .reach(call.arg(self.address.url()).args(patterns))
            .finish()
            .await?;
        if !finished.status.success() {
            return Err(self.name(finished, "ls-remote"));
        }
        String::from_utf8_lossy(&finished.stdout)
            .lines()
            .map(|line| {
                let (id, name) = line.split_once('\t').ok_or_else(|| Error::UnexpectedOutput {
                    verb: "ls-remote",
                    detail: line.chars().take(80).collect(),
                })?;
                Ok((name.to_owned(), commit_id(id)?))
            })
            .collect()
    }

    /// Names a failed conversation with this server.
    pub(crate) fn name(&self, finished: Finished, verb: &'static str) -> Error {
        let said = finished.stderr.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let (url, host) = (self.address.url().to_owned(), self.address.host().to_owned());
        let detail = finished.stderr.clone();
        if has(&["no space left on device", "disk quota exceeded"]) {
            finished.into_error(verb)
        } else if has(&["returned error: 30", "redirect"]) {
            Error::Redirected { url }
        } else if has(&[
            "returned error: 401",
            "returned error: 403",
            "authentication failed",
            "could not read username",
            "could not read password",
        ]) {
            Error::AccessRefused { host, detail }
        } else if has(&[
            "returned error: 404",
            "' not found",
            "does not exist",
            "not appear to be a git repository",
        ]) {
            Error::RepositoryMissing { url }
        } else if has(&[
            "could not resolve",
            "failed to connect",
            "couldn't connect",
            "could not connect",
            "connection refused",
            "connection reset",
            "timed out",
            "too slow",
            "empty reply",
            "returned error: 5",
            "returned error: 429",
            "rpc failed",
            "early eof",
            "hung up unexpectedly",
            "disconnect",
        ]) {
            Error::ServerUnreachable { host, detail }
        } else {
            finished.into_error(verb)
        }
    }
}
