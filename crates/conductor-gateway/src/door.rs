//! Where a sandbox knocks: a directory of its own with one socket, open for as long as the invocation lasts (S-32).
//!
//! The parent is closed to everybody else, so only a sandbox that has the directory mounted finds the socket. A door
//! has a limit of visitors; more wait outside (S-33). Closing it ends every visit. It does not know what is said.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::switch::{Switch, Without};

/// Where all socket directories of this process are, open to nobody else.
#[derive(Debug, Clone)]
pub struct Doors {
    parent: PathBuf,
}

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory or socket could not be made.
    #[error("could not make {}", path.display())]
    Make {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could look into the parent.
    #[error("{} is open to others: its mode is {mode:o}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The name could lead elsewhere.
    #[error("`{0}` cannot name a socket directory")]
    Name(String),
}

impl Doors {
    /// Makes the parent directory, or takes it as it is if nobody else can look into it.
    pub fn below(parent: &Path) -> Result<Self, Error> {
        Self::made(parent, &Without::default())
    }

    /// The same without a protection, so that a test can show what it is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    pub fn below_without(parent: &Path, switch: Switch) -> Result<Self, Error> {
        let mut without = Without::default();
        without.also(switch);
        Self::made(parent, &without)
    }

    fn made(parent: &Path, without: &Without) -> Result<Self, Error> {
        let failed = |source| Error::Make {
            path: parent.to_owned(),
            source,
        };
        match DirBuilder::new().recursive(true).mode(0o700).create(parent) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let mode = fs::symlink_metadata(parent).map_err(failed)?.mode();
        if mode & 0o170_777 != 0o040_700 && without.has(Switch::ClosedParent) {
            return Err(Error::Open {
                path: parent.to_owned(),
                mode,
            });
        }
        Ok(Self {
            parent: parent.to_owned(),
        })
    }

    /// Removes the sockets that an earlier process left, and the directories that are empty then; whatever else is there
    /// stays. Only for whoever owns the parent alone.
    pub fn swept(self) -> Result<Self, Error> {
        let failed = |source| Error::Make {
            path: self.parent.clone(),
            source,
        };
        for entry in fs::read_dir(&self.parent).map_err(failed)? {
            let directory = entry.map_err(failed)?.path();
            for left in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if left.file_type().is_ok_and(|kind| kind.is_socket()) {
                    let _ = fs::remove_file(left.path());
                }
            }
            let _ = fs::remove_dir(&directory);
        }
        Ok(self)
    }

    /// Opens a door: a directory of this name with a socket `way` in it. If repeated: the socket left by an earlier
    /// process is replaced.
    pub(crate) fn open(&self, name: &str, way: &'static str) -> Result<(UnixListener, PathBuf), Error> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
            return Err(Error::Name(name.to_owned()));
        }
        let directory = self.parent.join(name);
        let socket = directory.join(way);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Make { path, source }
        };
        if let Err(error) = fs::create_dir(&directory)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(failed(&directory)(error));
        }
        // The sandbox's user is another one: it may look and knock, and nothing else.
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).map_err(failed(&directory))?;
        match fs::remove_file(&socket) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&socket)(error)),
        }
        // The name of a socket has at most 107 bytes; through the open directory it is short wherever that is.
        let opened = fs::File::open(&directory).map_err(failed(&directory))?;
        let short = format!("/proc/self/fd/{}/{way}", opened.as_raw_fd());
        let listener = UnixListener::bind(short).map_err(failed(&socket))?;
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).map_err(failed(&socket))?;
        Ok((listener, directory))
    }
}

/// An open door. Dropping it closes it, without waiting for the visits to end.
#[derive(Debug)]
pub struct Door {
    directory: PathBuf,
    way: &'static str,
    welcome: JoinHandle<()>,
}

impl Door {
    /// Lets at most `most` visitors in at a time, each handled by `visit`.
    pub(crate) fn welcome<F, Fut>(
        (listener, directory): (UnixListener, PathBuf),
        way: &'static str,
        most: usize,
        visit: F,
    ) -> Self
    where
        F: Fn(UnixStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let welcome = tokio::spawn(async move {
            // Owned by this task: when it is aborted, every visit is.
            let mut visits = JoinSet::new();
            loop {
                tokio::select! {
                    came = listener.accept(), if visits.len() < most => match came {
                        Ok((stream, _)) => { visits.spawn(visit(stream)); }
                        // Out of descriptors, most likely: a visit that ends gives some back.
                        Err(error) => {
                            tracing::warn!(%error, "could not let a visitor in");
                            if visits.join_next().await.is_none() {
                                tokio::task::yield_now().await;
                            }
                        }
                    },
                    Some(_) = visits.join_next() => {}
                }
            }
        });
        Self {
            directory,
            way,
            welcome,
        }
    }

    /// The directory to mount into the sandbox, read-only.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The name of the socket in the directory.
    pub fn socket(&self) -> &'static str {
        self.way
    }

    /// Ends every visit and waits until they are over.
    pub async fn close(mut self) {
        self.welcome.abort();
        let _ = (&mut self.welcome).await;
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.welcome.abort();
        // Nothing depends on these: the directory is of no use to anybody any more.
        let _ = fs::remove_file(self.directory.join(self.way));
        let _ = fs::remove_dir(&self.directory);
    }
}

/// What a visitor must show: it was given to one sandbox, and opens that sandbox's doors only.
#[derive(Debug)]
pub struct Token(SecretString);

impl Token {
    /// Takes a token that was drawn elsewhere.
    pub fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        self.0.expose_secret().as_bytes().ct_eq(shown).into()
    }
}
