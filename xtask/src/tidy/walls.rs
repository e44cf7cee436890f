//! Rules about the domain's walls: its `clippy.toml` replaces the root's, so nothing may be lost on the way, and nobody
//! but tests may open a door in it.
//!
//! It does not know what a wall keeps out; clippy does.

use super::Finding;
use super::source::Source;

const ROOT: &str = "clippy.toml";
const DOMAIN: &str = "crates/conductor-domain/clippy.toml";
const DOMAIN_CODE: &str = "crates/conductor-domain/src/";

/// Clippy reads the nearest file only: what the root walls off must stand in the domain's file again.
pub(super) fn domain_has_all_walls(sources: &[Source]) -> Vec<Finding> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let Some(root) = find(ROOT) else { return Vec::new() };
    let domain: Vec<&str> = find(DOMAIN)
        .map(|source| walls(source).map(|(_, wall)| wall).collect())
        .unwrap_or_default();
    walls(root)
        .filter(|(_, wall)| !domain.contains(wall))
        .map(|(line, wall)| Finding::new(root, line, format!("{DOMAIN} does not wall off `{wall}`")))
        .collect()
}

/// An `allow` in the domain's code would undo its walls in one line.
pub(super) fn domain_has_no_doors(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with(DOMAIN_CODE))
    {
        for (line, _) in source
            .code()
            .filter(|(line, code)| code.contains("clippy::disallowed_") && !source.is_test_line(*line))
        {
            findings.push(Finding::new(
                source,
                line,
                "the domain allows itself what its clippy.toml walls off",
            ));
        }
    }
    findings
}

/// Lists the paths that a `clippy.toml` walls off.
fn walls(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source.lines().filter_map(|(line, text)| {
        let path = text.trim().strip_prefix("{ path = \"")?.split('"').next()?;
        Some((line, path))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::from_texts;
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_wall_of_the_root_that_the_domain_lacks_is_found() {
        let root = "disallowed-methods = [\n  { path = \"std::env::var\", reason = \"x\" },\n  { path = \"a::now\" },\n]\n";
        let domain = "disallowed-methods = [\n  { path = \"a::now\" },\n]\n";
        let found = domain_has_all_walls(&from_texts(&[(ROOT, root), (DOMAIN, domain)]));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["clippy.toml:2: crates/conductor-domain/clippy.toml does not wall off `std::env::var`"]
        );
        assert_eq!(
            domain_has_all_walls(&from_texts(&[(ROOT, root), (DOMAIN, root)])),
            []
        );
    }

    #[test]
    fn a_door_in_the_domain_is_found_outside_tests() {
        let door = "//! A.\n#[allow(clippy::disallowed_methods, reason = \"just once\")]\nfn a() {}\n";
        check(
            domain_has_no_doors,
            "crates/conductor-domain/src/decide.rs",
            door,
            &[(2, "the domain allows itself what its clippy.toml walls off")],
        );
        check(
            domain_has_no_doors,
            "crates/conductor-domain/tests/scenarios.rs",
            door,
            &[],
        );
        check(domain_has_no_doors, "crates/conductor/src/wire.rs", door, &[]);
    }
}
