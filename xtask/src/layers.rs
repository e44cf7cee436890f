//! Checks that every crate depends only on what the design lets it know.
//!
//! The table below is the design's "may know" column; a crate that is not in it fails, too. Reads what cargo says about
//! dependencies, never source text, so it does not know what a dependency is used for.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{self, cargo};

/// One crate and what it may know.
struct Layer {
    name: &'static str,
    knows: Knows,
    /// Whether its tests may use the fakes, the contract suites and the forge.
    tests_know_the_kit: bool,
}

enum Knows {
    Only(&'static [&'static str]),
    All,
}

use Knows::{All, Only};

/// A crate that the test kit itself stands on, or that needs none of it.
const fn inner(name: &'static str, knows: &'static [&'static str]) -> Layer {
    Layer {
        name,
        knows: Only(knows),
        tests_know_the_kit: false,
    }
}

/// A crate that is tested with the kit.
const fn outer(name: &'static str, knows: &'static [&'static str]) -> Layer {
    Layer {
        name,
        knows: Only(knows),
        tests_know_the_kit: true,
    }
}

/// A crate in which everything meets.
const fn top(name: &'static str) -> Layer {
    Layer {
        name,
        knows: All,
        tests_know_the_kit: true,
    }
}

const DOMAIN: &str = "conductor-domain";
const POLICY: &str = "conductor-policy";
const PORT: &str = "conductor-port";
const GUEST: &str = "conductor-guest";
const PROCESSOR: &str = "conductor-processor";

const KIT: &[&str] = &["conductor-testkit", "conductor-contract", "conductor-forge"];

/// Whoever knows a port knows the domain's words in it, so both are named.
const LAYERS: &[Layer] = &[
    inner(DOMAIN, &[]),
    inner(POLICY, &[DOMAIN]),
    inner(PORT, &[DOMAIN]),
    outer("conductor-contract", &[DOMAIN, PORT]),
    outer("conductor-engine", &[DOMAIN, PORT, POLICY]),
    outer("conductor-store", &[DOMAIN, PORT]),
    outer("conductor-git", &[DOMAIN, PORT]),
    inner(GUEST, &[]),
    outer("conductor-executor", &[DOMAIN, PORT, GUEST]),
    outer("conductor-gateway", &[DOMAIN, PORT]),
    outer("conductor-agent", &[DOMAIN, PORT]),
    outer(PROCESSOR, &[DOMAIN, PORT]),
    outer("conductor-skill", &[DOMAIN, PORT]),
    outer("conductor-github", &[DOMAIN, PORT]),
    inner("conductor-forge", &[]),
    outer("conductor-tools", &[DOMAIN, PORT, POLICY]),
    outer("conductor-tools", &[DOMAIN, PORT]),
    outer("conductor-web", &[DOMAIN, PORT]),
    top("conductor"),
    outer("conductor-admin", &[DOMAIN, PROCESSOR]),
    top("conductor-testkit"),
    top("conductor-it"),
    inner("xtask", &[]),
];

/// What the domain may use from outside: words for data, hashes and errors; nothing that acts.
const DOMAIN_USES: &[&str] = &["serde", "serde_json", "sha2", "hex", "thiserror"];

/// Crates that must not be built, each with its reason. The lock file may name them for features that nobody enables.
const BANNED: &[(&str, &str)] = &[(
    "ring",
    "aws-lc-rs is the one crypto provider; rustls panics at first use when both are there",
)];

/// Checks the workspace and says what it found.
pub(crate) fn run(_: &[String]) -> Result<ExitCode> {
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with every edge that is not in the table.
pub(crate) fn check() -> Result<()> {
    let metadata = process::capture(&mut cargo("metadata --no-deps --format-version 1 --offline"))?;
    let metadata: Value = serde_json::from_str(&metadata).context("could not read cargo metadata")?;
    let edges = edges(&metadata)?;
    let built = process::capture(
        cargo("tree --workspace --locked --target all --edges all --prefix none --format").arg("{p}"),
    )?;

    let mut wrong = wrong_edges(&edges);
    wrong.extend(banned(&built));
    for line in &wrong {
        eprintln!("{line}");
    }
    ensure!(
        wrong.is_empty(),
        "{} dependencies are not in the table of xtask/src/layers.rs",
        wrong.len()
    );
    eprintln!(
        "{} dependencies, all in the table; {DOMAIN} uses {} only",
        edges.len(),
        DOMAIN_USES.join(", ")
    );
    Ok(())
}

/// One dependency as a manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    kind: Kind,
    to_workspace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Build,
    Dev,
}

fn edges(metadata: &Value) -> Result<Vec<Edge>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let members: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut edges = Vec::new();
    for package in packages {
        let from = package["name"].as_str().context("a package has no name")?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().context("a dependency has no name")?;
            let kind = match dependency["kind"].as_str() {
                None => Kind::Normal,
                Some("build") => Kind::Build,
                Some("dev") => Kind::Dev,
                Some(other) => anyhow::bail!("{from} → {to} is of an unknown kind `{other}`"),
            };
            let to_workspace = members.contains(&to);
            edges.push(Edge {
                from: from.to_owned(),
                to: to.to_owned(),
                kind,
                to_workspace,
            });
        }
    }
    Ok(edges)
}

fn wrong_edges(edges: &[Edge]) -> Vec<String> {
    edges
        .iter()
        .filter_map(|edge| reason_against(edge).map(|why| format!("{} → {}: {why}", edge.from, edge.to)))
        .collect()
}

fn reason_against(edge: &Edge) -> Option<String> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == edge.from) else {
        return Some(format!("{} is not in the table", edge.from));
    };
    if !edge.to_workspace {
        let acts = edge.from == DOMAIN && edge.kind != Kind::Dev && !DOMAIN_USES.contains(&edge.to.as_str());
        return acts.then(|| format!("the domain may use {} only", DOMAIN_USES.join(", ")));
    }
    if edge.to == "xtask" {
        return Some("nothing may depend on xtask".to_owned());
    }
    let Only(known) = layer.knows else { return None };
    let known_to_tests =
        edge.kind == Kind::Dev && layer.tests_know_the_kit && KIT.contains(&edge.to.as_str());
    if known_to_tests || known.contains(&edge.to.as_str()) {
        return None;
    }
    Some(match known {
        [] => "it may know no other crate of the workspace".to_owned(),
        names => format!("it may know {} only", names.join(", ")),
    })
}

/// Finds banned crates in a list with one `name version` a line.
fn banned(built: &str) -> Vec<String> {
    BANNED
        .iter()
        .filter(|(name, _)| {
            built
                .lines()
                .any(|line| line.split_whitespace().next() == Some(name))
        })
        .map(|(name, why)| format!("{name} is built: {why}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(from: &str, to: &str, kind: &str) -> Value {
        let member = |name: &str, dependencies: &str| {
            format!(r#"{{"name": "{name}", "dependencies": [{dependencies}]}}"#)
        };
        let dependency = format!(r#"{{"name": "{to}", "kind": {kind}}}"#);
        let mut packages = vec![member(from, &dependency)];
        if to.starts_with("conductor") || to == "xtask" {
            packages.push(member(to, ""));
        }
        serde_json::from_str(&format!(r#"{{"packages": [{}]}}"#, packages.join(","))).expect("this is JSON")
    }

    fn check_edge(from: &str, to: &str, kind: &str, expected: &[&str]) {
        let edges = edges(&metadata(from, to, kind)).expect("the sample is well-formed");
        assert_eq!(wrong_edges(&edges), expected, "{from} → {to} ({kind})");
    }

    #[test]
    fn adapters_never_name_each_other() {
        let why = "conductor-git → conductor-github: it may know conductor-domain, conductor-port only";
        check_edge("conductor-git", "conductor-github", "null", &[why]);
        check_edge("conductor-git", "conductor-github", "\"dev\"", &[why]);
        check_edge("conductor-git", "conductor-port", "null", &[]);
    }

    #[test]
    fn the_domain_knows_nothing_and_uses_nothing_that_acts() {
        check_edge(
            "conductor-domain",
            "conductor-port",
            "null",
            &["conductor-domain → conductor-port: it may know no other crate of the workspace"],
        );
        check_edge(
            "conductor-domain",
            "tokio",
            "null",
            &["conductor-domain → tokio: the domain may use serde, serde_json, sha2, hex, thiserror only"],
        );
        check_edge(
            "conductor-domain",
            "tokio",
            "\"build\"",
            &["conductor-domain → tokio: the domain may use serde, serde_json, sha2, hex, thiserror only"],
        );
        check_edge("conductor-domain", "serde", "null", &[]);
        check_edge("conductor-domain", "proptest", "\"dev\"", &[]);
    }

    #[test]
    fn the_test_kit_is_for_tests() {
        check_edge("conductor-store", "conductor-contract", "\"dev\"", &[]);
        check_edge(
            "conductor-store",
            "conductor-contract",
            "null",
            &["conductor-store → conductor-contract: it may know conductor-domain, conductor-port only"],
        );
        check_edge("conductor-it", "conductor-store", "null", &[]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_list_fails() {
        check_edge(
            "conductor-misc",
            "serde",
            "null",
            &["conductor-misc → serde: conductor-misc is not in the table"],
        );
        check_edge(
            "conductor",
            "xtask",
            "null",
            &["conductor → xtask: nothing may depend on xtask"],
        );
    }

    #[test]
    fn a_second_crypto_provider_fails() {
        let why = "ring is built: aws-lc-rs is the one crypto provider; rustls panics at first use when both are there";
        assert_eq!(banned("rustls v0.23.46\nring v0.17.14\n"), [why]);
        assert_eq!(banned("string_cache v0.8.9\nring-buffer v1.0.0\n"), [""; 0]);
    }
}
