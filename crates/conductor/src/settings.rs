//! What a server is told: flags first, then `conductor.toml` in the data directory, then defaults; nothing is guessed.
//!
//! The file is strict: an unknown key or a wrong value is an error with line and column. This module does not know what a
//! server does with it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use conductor_domain::spec::{InvocationLimits, Limits, RedFirst};
use conductor_domain::time::Millis;
use secrecy::SecretString;
use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// Where a server listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:4180";
/// The forge unless told otherwise.
const FORGE: &str = "https://api.github.com";

/// What can be said in flags and in the file, by the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Told {
    /// Address to listen on; loopback only for now [default: 127.0.0.1:4180]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Address of the forge's API [default: https://api.github.com]
    #[arg(long, value_name = "URL")]
    pub(crate) forge_url: Option<String>,
    /// Numeric id of the GitHub App
    #[arg(long, value_name = "ID")]
    pub(crate) app_id: Option<u64>,
    /// File with the App's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) private_key_file: Option<PathBuf>,
    /// File with the secret that signs webhooks; without it none are taken
    #[arg(long, value_name = "FILE")]
    pub(crate) webhook_secret_file: Option<PathBuf>,
    /// Address under which people reach this server, for links
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Where agents' commands run; must be named
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Option<String>,
    /// Which agents work
    #[arg(long, value_name = "NAME")]
    pub(crate) agents: Option<Agents>,
    /// What scripted agents play
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Address of a PostgreSQL database that keeps the records, instead of a file in the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<DatabaseUrl>,
    /// What runs may use up; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) limits: ToldLimits,
}

/// The address of a database; it may hold a password and is not shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The address, for whoever connects.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for DatabaseUrl {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

/// Which agents work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Agents {
    /// They play a scenario, word for word.
    Scripted,
}

/// What runs may use up, where it differs from the defaults (RUN-13).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldLimits {
    plan_revisions: Option<u32>,
    implementation_retries: Option<u32>,
    agent_retries: Option<u32>,
    interruptions: Option<u32>,
    effect_retries: Option<u32>,
    invocation_tokens: Option<u64>,
    invocation_seconds: Option<u64>,
    invocation_tool_calls: Option<u32>,
    test_seconds: Option<u64>,
    reminder_seconds: Option<u64>,
    poll_seconds: Option<u64>,
    red_first: Option<RedFirst>,
}

impl ToldLimits {
    /// Refuses lengths and amounts with which nothing could ever be done, or a person would be written to without end.
    fn check(&self, path: &Path) -> Result<(), Failure> {
        let told = [
            ("invocation-tokens", self.invocation_tokens, 1),
            ("invocation-seconds", self.invocation_seconds, 1),
            (
                "invocation-tool-calls",
                self.invocation_tool_calls.map(u64::from),
                1,
            ),
            ("test-seconds", self.test_seconds, 1),
            ("reminder-seconds", self.reminder_seconds, 60),
            ("poll-seconds", self.poll_seconds, 1),
        ];
        for (key, told, least) in told {
            if let Some(told) = told.filter(|told| *told < least) {
                let what = format!(
                    "{} cannot be used: `{key} = {told}` is too little",
                    path.display()
                );
                return Err(usage(
                    "CDR0406",
                    what,
                    &format!("`{key}` must be {least} or more"),
                ));
            }
        }
        Ok(())
    }

    /// Completes them with the defaults.
    pub(crate) fn complete(&self) -> Limits {
        let usual = Limits::default();
        let seconds = |told: Option<u64>, usual: Millis| told.map_or(usual, Millis::seconds);
        Limits {
            plan_revisions: self.plan_revisions.unwrap_or(usual.plan_revisions),
            implementation_retries: self
                .implementation_retries
                .unwrap_or(usual.implementation_retries),
            agent_retries: self.agent_retries.unwrap_or(usual.agent_retries),
            interruptions: self.interruptions.unwrap_or(usual.interruptions),
            effect_retries: self.effect_retries.unwrap_or(usual.effect_retries),
            invocation: InvocationLimits {
                tokens: self.invocation_tokens.unwrap_or(usual.invocation.tokens),
                time: seconds(self.invocation_seconds, usual.invocation.time),
                tool_calls: self.invocation_tool_calls.unwrap_or(usual.invocation.tool_calls),
            },
            test_time: seconds(self.test_seconds, usual.test_time),
            reminder: seconds(self.reminder_seconds, usual.reminder),
            poll: seconds(self.poll_seconds, usual.poll),
            red_first: self.red_first.unwrap_or(usual.red_first),
        }
    }
}

impl Told {
    /// Completes what flags left unsaid from the file; one that is not there says nothing.
    pub(crate) fn or_file(self, path: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(error) => {
                let what = format!("reading {}: {error}", path.display());
                return Err(Failure::coded("CDR0406", what, "look at its permissions"));
            }
        };
        let file: Self = toml::from_str(&text).map_err(|error| {
            let what = format!(
                "{} cannot be used\n{}",
                path.display(),
                error.to_string().trim_end()
            );
            Failure::coded("CDR0406", what, "docs/cli.md lists the settings").exiting(Exit::Usage)
        })?;
        file.limits.check(path)?;
        Ok(Self {
            listen: self.listen.or(file.listen),
            forge_url: self.forge_url.or(file.forge_url),
            app_id: self.app_id.or(file.app_id),
            private_key_file: self.private_key_file.or(file.private_key_file),
            webhook_secret_file: self.webhook_secret_file.or(file.webhook_secret_file),
            public_url: self.public_url.or(file.public_url),
            executor: self.executor.or(file.executor),
            agents: self.agents.or(file.agents),
            scenario: self.scenario.or(file.scenario),
            database_url: self.database_url.or(file.database_url),
            limits: file.limits,
        })
    }

    /// Where to listen; not where others could reach it, as long as a token is all that protects it.
    pub(crate) fn listen(&self) -> Result<SocketAddr, Failure> {
        let text = self.listen.as_deref().unwrap_or(LISTEN);
        let address: SocketAddr = text.parse().map_err(|_| {
            usage(
                "CDR0404",
                format!("`{text}` is not an address with a port"),
                "write for example 127.0.0.1:4180",
            )
        })?;
        if !address.ip().is_loopback() {
            let hint = "listen on 127.0.0.1 or [::1]; remote use with HTTPS and logins comes later";
            return Err(usage(
                "CDR0404",
                format!("{address} is not loopback, and others could reach it"),
                hint,
            ));
        }
        Ok(address)
    }

    /// How the App signs in at the forge.
    pub(crate) fn forge(&self) -> Result<conductor_github::Config, Failure> {
        let url = self.forge_url.as_deref().unwrap_or(FORGE);
        let missing =
            |what: &str, hint: &str| usage("CDR0407", format!("signing in at {url} needs {what}"), hint);
        let app_id = self
            .app_id
            .ok_or_else(|| missing("the App's id", "give --app-id"))?;
        let key = self
            .private_key_file
            .as_deref()
            .ok_or_else(|| missing("the App's private key", "give --private-key-file"))?;
        Ok(conductor_github::Config::new(url, app_id, secret(key)?))
    }

    /// The secret that signs webhooks.
    pub(crate) fn webhook_secret(&self) -> Result<Option<SecretString>, Failure> {
        self.webhook_secret_file.as_deref().map(secret).transpose()
    }

    /// What scripted agents play.
    pub(crate) fn scenario(&self) -> Result<Option<String>, Failure> {
        match (self.agents, &self.scenario) {
            (None, None) => Ok(None),
            (Some(Agents::Scripted), Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::because(format!("reading the scenario {}", path.display()), &error)
                })?;
                check_scenario(&text, path)?;
                Ok(Some(text))
            }
            (Some(Agents::Scripted), None) => Err(usage(
                "CDR0408",
                "scripted agents need a scenario to play".to_owned(),
                "give --scenario FILE",
            )),
            (None, Some(_)) => Err(usage(
                "CDR0408",
                "a scenario is for scripted agents".to_owned(),
                "give --agents scripted too",
            )),
        }
    }
}

/// Says where a scenario is wrong before anything is started.
pub(crate) fn check_scenario(text: &str, path: &Path) -> Result<(), Failure> {
    conductor_agent::Scenario::parse(text)
        .map(|_| ())
        .map_err(|invalid| {
            let what = format!("the scenario {} cannot be played: {invalid}", path.display());
            usage("CDR0408", what, "docs/scenarios.md describes the format")
        })
}

fn usage(code: &str, what: String, hint: &str) -> Failure {
    Failure::coded(code, what, hint).exiting(Exit::Usage)
}

fn secret(path: &Path) -> Result<SecretString, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        usage(
            "CDR0407",
            format!("reading the secret in {}: {error}", path.display()),
            "look at its path and permissions",
        )
    })?;
    let text = text.trim();
    if text.is_empty() {
        return Err(usage(
            "CDR0407",
            format!("{} is empty", path.display()),
            "put the secret into it",
        ));
    }
    Ok(SecretString::from(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(text: &str, flags: Told) -> Result<Told, Failure> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("conductor.toml");
        std::fs::write(&path, text).expect("written");
        flags.or_file(&path)
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let flags = Told {
            app_id: Some(1),
            ..Told::default()
        };
        let told = with_file(
            "app-id = 2\nlisten = \"127.0.0.1:0\"\n[limits]\nagent-retries = 9\nred-first = \"require\"\n",
            flags,
        )
        .expect("valid");
        assert_eq!((told.app_id, told.listen().expect("valid").port()), (Some(1), 0));
        let limits = told.limits.complete();
        assert_eq!(
            (limits.agent_retries, limits.red_first, limits.plan_revisions),
            (9, RedFirst::Require, 3)
        );
    }

    /// SEC-2: an address may hold a password.
    #[test]
    fn the_address_of_a_database_is_not_shown() {
        let told =
            with_file("database-url = \"postgres://me:hunter2@db/x\"\n", Told::default()).expect("valid");
        let url = told.database_url.as_ref().expect("it was said");
        assert_eq!(url.expose(), "postgres://me:hunter2@db/x");
        assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
    }

    #[test]
    fn an_unknown_key_or_a_wrong_value_is_named_with_its_place() {
        for (text, place) in [
            ("app-id = 1\nexekutor = \"x\"\n", "line 2, column 1"),
            ("app-id = \"one\"\n", "line 1, column 10"),
            ("[limits]\nagent-retries = -1\n", "line 2"),
            ("agents = \"claude\"\n", "line 1"),
            ("app-id = \n", "line 1"),
        ] {
            let failure = with_file(text, Told::default()).expect_err(text);
            assert_eq!(
                (failure.exit, failure.code.as_deref()),
                (Exit::Usage, Some("CDR0406"))
            );
            assert!(failure.what.contains(place), "{text}: {}", failure.what);
        }
    }

    /// RUN-13: a limit of nothing is a mistake, not a wish; how often something is repeated may be never.
    #[test]
    fn a_limit_under_its_minimum_is_refused_with_the_minimum() {
        for (line, least) in [
            ("invocation-tokens = 0", "1 or more"),
            ("invocation-seconds = 0", "1 or more"),
            ("invocation-tool-calls = 0", "1 or more"),
            ("test-seconds = 0", "1 or more"),
            ("poll-seconds = 0", "1 or more"),
            ("reminder-seconds = 0", "60 or more"),
            ("reminder-seconds = 59", "60 or more"),
        ] {
            let failure = with_file(&format!("[limits]\n{line}\n"), Told::default()).expect_err(line);
            assert_eq!(
                (failure.exit, failure.code.as_deref()),
                (Exit::Usage, Some("CDR0406"))
            );
            assert!(failure.what.contains(line), "{}", failure.what);
            let hint = failure.hint.expect("a hint");
            assert!(hint.contains(least), "{line}: {hint}");
        }
        let least =
            "[limits]\nreminder-seconds = 60\npoll-seconds = 1\nagent-retries = 0\nplan-revisions = 0\n";
        with_file(least, Told::default()).expect("valid");
    }

    /// SEC-7: until there is a login, nobody else can reach the door.
    #[test]
    fn only_loopback_is_listened_on() {
        for (address, is_fine) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("192.168.1.1:1", false),
            ("localhost", false),
        ] {
            let told = Told {
                listen: Some(address.into()),
                ..Told::default()
            };
            assert_eq!(told.listen().is_ok(), is_fine, "{address}");
        }
    }
}
