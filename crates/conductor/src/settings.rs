//! What a server is told: flags first, then `conductor.toml` in the data directory, then defaults; nothing is guessed.
//!
//! The file is strict: an unknown key or a wrong value is an error with line and column. This module does not know what a
//! server does with it.

mod inspection;
mod notify;
mod listen;
mod skills;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use conductor_domain::egress::Grant;
use conductor_domain::egress::grant::BadGrant;
use conductor_domain::spec::{InvocationLimits, Limits, RedFirst};
use conductor_domain::time::Millis;
use conductor_engine::PortRange;
use conductor_executor::{docker, local};
use secrecy::SecretString;
use serde::Deserialize;

use crate::executors::Containers;
use crate::exit::{Exit, Failure};

pub(crate) use inspection::ToldInspection;
pub(crate) use listen::Listen;
use notify::ToldNotify;
use skills::ToldSkills;

/// The forge unless told otherwise.
pub(crate) const FORGE: &str = "https://api.github.com";

/// What can be said in flags and in the file, by the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Told {
    /// Address to listen on; beyond loopback only with HTTPS and operators who sign in [default: 127.0.0.1:4180]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// File with the certificate for HTTPS and its chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// File with the certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy before this server does HTTPS and tells in X-Forwarded-For who asks
    #[arg(long)]
    #[serde(default)]
    pub(crate) behind_proxy: bool,
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
    /// Where agents' commands run: `local` or `docker`; must be named
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
    /// Directory for clones and working directories, shared by all servers of one database [default: the data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    /// Ports on loopback that runs get for their own, two each [default: 21000-21511]
    #[arg(long, value_name = "FIRST-LAST")]
    pub(crate) ports: Option<String>,
    /// What runs may use up; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) limits: ToldLimits,
    /// What one sandbox may use up; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) sandbox: ToldSandbox,
    /// What the sandboxes of every project may reach; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) egress: ToldEgress,
    /// Which role has which skills; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) skills: ToldSkills,
    /// What an inspection of a change objects to; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) inspection: ToldInspection,
    /// Where notices go; in the file only.
    #[arg(skip)]
    #[serde(default)]
    pub(crate) notify: ToldNotify,
}

/// What the sandboxes of every project may reach (EXEC-3); nothing unless it is written down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldEgress {
    #[serde(default, deserialize_with = "grants")]
    pub(crate) allow: Vec<Grant>,
}

fn grants<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Grant>, D::Error> {
    let written = Vec::<String>::deserialize(deserializer)?;
    let read = |text: &String| {
        Grant::parse(text).map_err(|error| {
            let hint = BadGrant::HINT;
            serde::de::Error::custom(format!("{}; {hint}", crate::exit::chain(&error)))
        })
    };
    written.iter().map(read).collect()
}

/// What one sandbox may use up, where it differs from the defaults (EXEC-6).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ToldSandbox {
    milli_cpus: Option<NonZeroU64>,
    memory_mib: Option<NonZeroU64>,
    processes: Option<NonZeroU64>,
    open_files: Option<NonZeroU64>,
    temporary_mib: Option<NonZeroU64>,
    engine: Option<PathBuf>,
    image: Option<String>,
    #[serde(default)]
    old_engine: bool,
    #[serde(default)]
    may_miss: Vec<MissingLimit>,
}

/// A limit that may be missing where no cgroup can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MissingLimit {
    Memory,
    Processes,
    Cpu,
}

impl ToldSandbox {
    /// Completes the limits with the defaults.
    pub(crate) fn limits(&self) -> local::Limits {
        let usual = local::Limits::default();
        let mib = |told: Option<NonZeroU64>, usual| told.map_or(usual, |told| told.get() << 20);
        let count = |told: Option<NonZeroU64>, usual| told.map_or(usual, NonZeroU64::get);
        local::Limits {
            milli_cpus: count(self.milli_cpus, usual.milli_cpus),
            memory: mib(self.memory_mib, usual.memory),
            processes: count(self.processes, usual.processes),
            open_files: count(self.open_files, usual.open_files),
            temporary: mib(self.temporary_mib, usual.temporary),
            ..usual
        }
    }

    /// What containers are made with.
    pub(crate) fn containers(&self) -> Containers {
        Containers {
            engine: self.engine.clone().unwrap_or_else(|| "docker".into()),
            image: self
                .image
                .clone()
                .unwrap_or_else(|| docker::BASE_IMAGE.to_owned()),
            limits: self.limits(),
            may_miss: self.may_miss(),
            may_be_old: if self.old_engine {
                docker::MayBeOld::OperatorSaysSo
            } else {
                docker::MayBeOld::No
            },
        }
    }

    /// The limits that may be missing; none unless named.
    pub(crate) fn may_miss(&self) -> local::MayMiss {
        local::MayMiss::these(self.may_miss.iter().map(|limit| match limit {
            MissingLimit::Memory => local::Protection::Memory,
            MissingLimit::Processes => local::Protection::Processes,
            MissingLimit::Cpu => local::Protection::Cpu,
        }))
    }
}

/// The address of a database; it may hold a password and is not shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address that was put together here.
    pub(crate) fn new(address: impl Into<String>) -> Self {
        Self(address.into())
    }

    /// The address, for whoever connects.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// What of it nobody may read: the whole, and its password by itself, as it is written and as it is meant.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let host = place.split('/').next().unwrap_or_default();
        let before_host = host.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        let asked = query.split('&').filter_map(|pair| pair.split_once('='));
        let asked = asked.filter(|(key, _)| *key == "password");
        let mut secrets = vec![self.0.clone()];
        for (_, password) in before_host.into_iter().chain(asked) {
            secrets.extend([password.to_owned(), unescaped(password)]);
        }
        secrets
    }
}

/// Undoes the escapes of a URL; what is none stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = code.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
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
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            behind_proxy: self.behind_proxy || file.behind_proxy,
            forge_url: self.forge_url.or(file.forge_url),
            app_id: self.app_id.or(file.app_id),
            private_key_file: self.private_key_file.or(file.private_key_file),
            webhook_secret_file: self.webhook_secret_file.or(file.webhook_secret_file),
            public_url: self.public_url.or(file.public_url),
            executor: self.executor.or(file.executor),
            agents: self.agents.or(file.agents),
            scenario: self.scenario.or(file.scenario),
            database_url: self.database_url.or(file.database_url),
            storage: self.storage.or(file.storage),
            ports: self.ports.or(file.ports),
            limits: file.limits,
            sandbox: file.sandbox,
            egress: file.egress,
            skills: file.skills,
            inspection: file.inspection,
            notify: file.notify,
        })
    }

    /// Which ports runs get for their own (ENV-1).
    pub(crate) fn ports(&self) -> Result<PortRange, Failure> {
        let Some(text) = &self.ports else {
            return Ok(PortRange::USUAL);
        };
        let ends = text.split_once('-');
        let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        let per_run = PortRange::USUAL.per_run;
        match ends {
            Some((first, last)) if first >= 1024 && first <= last && last - first >= per_run - 1 => {
                Ok(PortRange { first, last, per_run })
            }
            Some(_) | None => Err(usage(
                "CDR0406",
                format!("`{text}` is no range of ports for runs"),
                "write for example 21000-21511: from 1024 on, and at least two",
            )),
        }
    }

    /// How the App signs in at the forge.
    pub(crate) fn forge(&self) -> Result<conductor_github::Config, Failure> {
        let url = self.forge_url.as_deref().unwrap_or(FORGE);
        let (Some(app_id), Some(key)) = (self.app_id, self.private_key_file.as_deref()) else {
            return Err(usage(
                "CDR0407",
                format!("signing in at {url} needs the App's id and its private key"),
                "give --app-id and --private-key-file",
            ));
        };
        let config = conductor_github::Config::new(url, app_id, secret(key)?);
        if is_loopback(url) {
            // The limits and the delays are GitHub's; a forge on this machine is the demo's or a test's.
            return Ok(config.for_stand_in());
        }
        Ok(config)
    }

    /// The secret that signs webhooks.
    pub(crate) fn webhook_secret(&self) -> Result<Option<SecretString>, Failure> {
        self.webhook_secret_file.as_deref().map(secret).transpose()
    }

    /// What scripted agents play.
    pub(crate) fn scenario(&self) -> Result<Option<String>, Failure> {
        match (self.agents, &self.scenario) {
            (None, None) => Ok(None),
            (Some(Agents::Scripted), Some(path)) => read_scenario(path).map(Some),
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

/// Reads a scenario, and says where it is wrong before anything is started.
pub(crate) fn read_scenario(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let what = format!("reading the scenario {}: {error}", path.display());
        usage(
            "CDR0408",
            what,
            "name a file that you may read; docs/scenarios.md has one to begin with",
        )
    })?;
    conductor_agent::Scenario::parse(&text).map_err(|invalid| {
        let what = format!("the scenario {} cannot be played: {invalid}", path.display());
        usage("CDR0408", what, "docs/scenarios.md describes the format")
    })?;
    Ok(text)
}

fn is_loopback(url: &str) -> bool {
    let address = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = address.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _port)| host);
    host.trim_matches(['[', ']'])
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_loopback())
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
        assert_eq!(
            (told.app_id, told.listen().expect("valid").address.port()),
            (Some(1), 0)
        );
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

    /// SEC-3: the password is known by itself, however it is written; an address without one has none.
    #[test]
    fn the_password_of_a_database_is_a_secret_by_itself() {
        for (address, passwords) in [
            (
                "postgres://me:hunter2%40home%2f1@db:5432/x?a=b",
                vec!["hunter2%40home%2f1", "hunter2@home/1"],
            ),
            (
                "postgres://db/x?sslmode=require&password=hunter2%zz",
                vec!["hunter2%zz", "hunter2%zz"],
            ),
            ("postgres://me@db/x", vec![]),
            ("postgres://db:5432/x", vec![]),
            ("sqlite", vec![]),
        ] {
            let expected: Vec<&str> = std::iter::once(address).chain(passwords).collect();
            assert_eq!(DatabaseUrl::new(address).secrets(), expected);
        }
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

    /// EXEC-3, S-35: what may be reached is written down as host names, and nothing else is understood.
    #[test]
    fn the_network_is_granted_by_host_name_and_a_bad_one_is_named() {
        let allow = |list: &str| with_file(&format!("[egress]\nallow = [{list}]\n"), Told::default());
        assert!(
            Told::default().egress.allow.is_empty(),
            "nothing is granted by default"
        );
        let told =
            allow("\"Files.Example\", \"*.files.example:8443\", \"http://files.example\"").expect("valid");
        let written: Vec<String> = told.egress.allow.iter().flat_map(Grant::written).collect();
        assert_eq!(
            written,
            ["files.example", "*.files.example:8443", "http://files.example"]
        );
        for bad in [
            "127.0.0.1",
            "*",
            "*.example",
            "localhost",
            "files.example:0",
            "files.example/x",
            "[::1]:80",
            "",
        ] {
            let failure = allow(&format!("\"{bad}\"")).expect_err(bad);
            assert_eq!(failure.code.as_deref(), Some("CDR0406"), "{bad}");
            assert!(failure.what.contains("line 2"), "{bad}: {}", failure.what);
        }
        with_file("[egress]\nalow = []\n", Told::default()).expect_err("an unknown key");
    }

    /// SEC-7: where others could reach the door, it does not open without HTTPS, its own or a proxy's.
    #[test]
    fn others_reach_the_door_only_over_https() {
        let https = Some("https://conductor.example".to_owned());
        let plain = Some("http://conductor.example".to_owned());
        for (address, behind_proxy, public_url, is_fine) in [
            ("127.0.0.1:1", false, &None, true),
            ("[::1]:1", false, &None, true),
            ("0.0.0.0:1", false, &None, false),
            ("0.0.0.0:1", false, &https, false),
            ("192.168.1.1:1", false, &None, false),
            ("[::]:1", false, &https, false),
            ("localhost", false, &None, false),
            ("0.0.0.0:1", true, &https, true),
            ("0.0.0.0:1", true, &plain, false),
            ("0.0.0.0:1", true, &None, false),
            ("127.0.0.1:1", true, &https, true),
            ("127.0.0.1:1", true, &None, false),
        ] {
            let told = Told {
                listen: Some(address.into()),
                behind_proxy,
                public_url: public_url.clone(),
                ..Told::default()
            };
            let found = told.listen();
            assert_eq!(found.is_ok(), is_fine, "{address} {behind_proxy} {public_url:?}");
            if let Ok(found) = found {
                let is_open = behind_proxy || !address.starts_with(['1', '[']);
                assert_eq!(found.is_open(), is_open, "{address}");
            }
        }
        for wrong in [
            "foo",
            "ftp://foo",
            "https://",
            "https:/foo",
            "https://a@foo",
            "https://foo?b",
        ] {
            let told = Told {
                public_url: Some(wrong.to_owned()),
                ..Told::default()
            };
            let failure = told.listen().expect_err(wrong);
            assert_eq!(failure.exit, crate::exit::Exit::Usage, "{wrong}");
        }
        let half = Told {
            tls_cert: Some("cert.pem".into()),
            public_url: https,
            ..Told::default()
        };
        assert!(half.listen().is_err());
    }
}
