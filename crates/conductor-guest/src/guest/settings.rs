//! Reads what the guest is started with.
//!
//! Nothing here is secret: arguments can be read in the sandbox. A debug build takes `--without NAME`, so that a test
//! can show that a protection is what it claims; a release build refuses it.
//! This module does not know what the settings do.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the guest is started with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The directory that file requests are confined to and commands start in.
    pub(crate) root: PathBuf,
    /// The most descriptors of a process.
    pub(crate) open_files: Option<u64>,
    /// The most processes of the sandbox's user, where no cgroup counts them.
    pub(crate) processes: Option<u64>,
    /// Whether whoever started the guest installed the system call list already.
    pub(crate) is_filtered: bool,
    without: Vec<Protection>,
}

/// A protection that a test can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Memory and descriptors hidden from other processes.
    Undumpable,
    /// The channel closed on exec.
    HiddenChannel,
    /// The system call list.
    Filter,
    /// No gain of privileges on exec.
    NoNewPrivileges,
    /// Commands that adopt their own orphans.
    Adoption,
}

impl Settings {
    /// Reads the arguments.
    pub(crate) fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut root = None;
        let mut settings = Self {
            root: PathBuf::new(),
            open_files: None,
            processes: None,
            is_filtered: false,
            without: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let name = argument.to_str().unwrap_or_default();
            let mut value = || arguments.next().ok_or_else(|| format!("`{name}` needs a value"));
            match name {
                "--root" => root = Some(PathBuf::from(value()?)),
                "--open-files" => settings.open_files = Some(number(name, &value()?)?),
                "--processes" => settings.processes = Some(number(name, &value()?)?),
                "--filtered-outside" => settings.is_filtered = true,
                "--without" if cfg!(debug_assertions) => settings.without.push(protection(&value()?)?),
                _ => return Err(format!("argument `{}` is unknown", argument.display())),
            }
        }
        settings.root = root.ok_or("`--root DIR` is needed")?;
        Ok(settings)
    }

    /// Whether a protection is in force.
    pub(crate) fn has(&self, protection: Protection) -> bool {
        !self.without.contains(&protection)
    }
}

fn number(name: &str, value: &OsString) -> Result<u64, String> {
    let text = value.to_str().unwrap_or_default();
    text.parse()
        .map_err(|_| format!("`{name}` needs a number, not `{}`", value.display()))
}

fn protection(name: &OsString) -> Result<Protection, String> {
    Ok(match name.to_str().unwrap_or_default() {
        "undumpable" => Protection::Undumpable,
        "hidden-channel" => Protection::HiddenChannel,
        "filter" => Protection::Filter,
        "no-new-privileges" => Protection::NoNewPrivileges,
        "adoption" => Protection::Adoption,
        _ => return Err(format!("protection `{}` is unknown", name.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], expected: Result<Settings, &str>) {
        let read = Settings::read(arguments.iter().map(OsString::from));
        assert_eq!(read, expected.map_err(str::to_owned), "{arguments:?}");
    }

    #[test]
    fn every_argument_is_known_and_complete() {
        let plain = || Settings {
            root: "/w".into(),
            open_files: None,
            processes: None,
            is_filtered: false,
            without: Vec::new(),
        };
        check(&["--root", "/w"], Ok(plain()));
        check(
            &[
                "--root",
                "/w",
                "--open-files",
                "1024",
                "--processes",
                "9",
                "--filtered-outside",
            ],
            Ok(Settings {
                open_files: Some(1024),
                processes: Some(9),
                is_filtered: true,
                ..plain()
            }),
        );
        check(
            &["--root", "/w", "--without", "filter"],
            Ok(Settings {
                without: vec![Protection::Filter],
                ..plain()
            }),
        );
        check(&[], Err("`--root DIR` is needed"));
        check(&["--root"], Err("`--root` needs a value"));
        check(
            &["--open-files", "-1"],
            Err("`--open-files` needs a number, not `-1`"),
        );
        check(&["--rot", "/w"], Err("argument `--rot` is unknown"));
        check(&["--without", "care"], Err("protection `care` is unknown"));
    }
}
