//! Hashes passwords and compares them (Argon2id), a few at a time: each takes 19 MiB and a while, on purpose.
//!
//! This module does not know whose they are.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use conductor_domain::fault::Fault;
use tokio::sync::Semaphore;

use crate::error::Error;

/// How many are hashed at once.
const AT_ONCE: usize = 2;
/// How many may wait.
const MOST_WAITING: usize = 32;
/// The shortest password.
pub(crate) const SHORTEST: usize = 12;
/// The longest one.
const LONGEST: usize = 512;

/// A hash of nothing that anybody knows, so that a name which is not there takes as long as one that is.
static NOBODY: LazyLock<String> = LazyLock::new(|| {
    let hash = Argon2::default().hash_password_with_salt(b"nobody", b"sixteen bytes of");
    hash.map(|hash| hash.to_string()).unwrap_or_default()
});

/// The room for hashing.
#[derive(Debug)]
pub(crate) struct Hashing {
    waiting: Semaphore,
    working: Semaphore,
}

impl Default for Hashing {
    fn default() -> Self {
        Self {
            waiting: Semaphore::new(MOST_WAITING),
            working: Semaphore::new(AT_ONCE),
        }
    }
}

impl Hashing {
    /// Hashes a new password.
    pub(crate) async fn hash(&self, password: String) -> Result<String, Error> {
        let length = password.chars().count();
        if length < SHORTEST || password.len() > LONGEST {
            return Err(Error::Invalid {
                what: format!("a password has {SHORTEST} to {LONGEST} characters"),
            });
        }
        self.work(move || {
            let hash = Argon2::default().hash_password(password.as_bytes());
            hash.map(|hash| hash.to_string()).ok()
        })
        .await?
        .ok_or_else(|| Fault::permanent("hashing a password: the hash could not be made").into())
    }

    /// Tells whether a password is the one that was hashed; without a hash it takes as long and is not.
    pub(crate) async fn is(&self, password: String, hash: Option<String>) -> Result<bool, Error> {
        let is_known = hash.is_some();
        if password.len() > LONGEST {
            return Ok(false);
        }
        let is_right = self
            .work(move || {
                let hash = hash.unwrap_or_else(|| NOBODY.clone());
                PasswordHash::new(&hash).is_ok_and(|hash| {
                    Argon2::default()
                        .verify_password(password.as_bytes(), &hash)
                        .is_ok()
                })
            })
            .await?;
        Ok(is_right && is_known)
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _waiting = self.waiting.try_acquire().map_err(|_| Error::Busy)?;
        let _working = self.working.acquire().await.map_err(|_| Error::Busy)?;
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Fault::transient("hashing a password: it ended early").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-7: the same password gives another hash each time, and only it opens.
    #[tokio::test]
    async fn only_the_password_opens_its_hash() {
        let hashing = Hashing::default();
        let word = || "correct horse battery".to_owned();
        let (one, two) = (
            hashing.hash(word()).await.expect("hashed"),
            hashing.hash(word()).await.expect("hashed"),
        );
        assert_ne!(one, two, "a salt each");
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert!(!one.contains("horse"));
        let is = async |password: &str, hash: Option<&str>| {
            let is = hashing.is(password.to_owned(), hash.map(str::to_owned)).await;
            is.expect("judged")
        };
        assert!(is("correct horse battery", Some(&one)).await);
        assert!(!is("correct horse batterz", Some(&one)).await);
        assert!(!is("", Some(&one)).await);
        assert!(!is("nobody", None).await, "the hash of nobody opens nothing");
        assert!(!is("x", Some("not a hash")).await);
        assert!(!is(&"x".repeat(LONGEST + 1), Some(&one)).await);
        for wrong in ["", "short", &"x".repeat(LONGEST + 1)] {
            assert!(hashing.hash(wrong.to_owned()).await.is_err(), "{wrong}");
        }
    }
}
