//! Rules about places: where git may be started, and which addresses and paths no file may name.
//!
//! It does not know why a file would want to.

use super::Finding;
use super::source::Source;

/// The two homes of git: the client's one function (S-9), and the forge's, which is a server that only tests and the
/// demo start.
const GIT_HOMES: &[&str] = &[
    "crates/conductor-git/src/call.rs",
    "crates/conductor-forge/src/git.rs",
];

/// One function builds every host git call, so that none forgets a protection.
pub(super) fn git_calls(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources
        .iter()
        .filter(|source| !GIT_HOMES.contains(&source.path.as_str()))
    {
        let starts = source.code().filter(|(_, code)| code.contains("Command::new("));
        let lines: Vec<(usize, &str)> = source.lines().collect();
        for (line, _) in starts.filter(|(line, _)| !source.is_test_line(*line)) {
            let written = lines.get(line - 1).map_or("", |(_, text)| *text);
            if written.contains("Command::new(\"git\"") {
                findings.push(Finding::new(
                    source,
                    line,
                    "only crates/conductor-git/src/call.rs may start git (S-9)",
                ));
            }
        }
    }
    findings
}

/// Where packages come from is the machine's business: a mirror or a proxy must be able to stand in.
pub(super) fn registry_hosts(sources: &[Source]) -> Vec<Finding> {
    in_lines(sources, |line| {
        let host = line
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
            .find(|word| is_registry(word))?;
        Some(format!("`{host}` is a package registry's host"))
    })
}

fn is_registry(word: &str) -> bool {
    const NAMES: &[&str] = &["npm", "pypi", "python", "crates", "debian"];
    const ENDS: &[&str] = &["org", "io", "com"];
    let word = word.trim_matches('.').to_ascii_lowercase();
    let mut labels = word.rsplit('.');
    let (Some(end), Some(name)) = (labels.next(), labels.next()) else {
        return false;
    };
    ENDS.contains(&end) && NAMES.iter().any(|known| name.starts_with(known))
}

/// A path of the machine that a file was written on means nothing on the reader's.
pub(super) fn machine_paths(sources: &[Source]) -> Vec<Finding> {
    // A home directory is a fair sample in a test about what a sandbox must not read.
    const SAMPLES: &[&str] = &[".ssh", ".claude", ".codex"];
    in_lines(sources, |line| {
        let path = machine_path(line)?;
        let is_sample = SAMPLES.iter().any(|sample| line.contains(sample));
        (!is_sample).then(|| format!("`{path}` is a path of a build machine"))
    })
}

fn machine_path(line: &str) -> Option<String> {
    const TOPS: &[&str] = &["work", "farm", "root"];
    TOPS.iter().map(|top| format!("/{top}/")).find(|path| {
        line.match_indices(path).any(|(at, _)| {
            !line[..at]
                .ends_with(|before: char| before.is_ascii_alphanumeric() || matches!(before, '_' | '.' | '-'))
        })
    })
}

fn in_lines(sources: &[Source], judge: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (line, text) in source.lines() {
            findings.extend(judge(text).map(|message| Finding::new(source, line, message)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    /// S-9.
    #[test]
    fn git_started_outside_its_home_is_found() {
        let text = "//! A.\nfn a() { Command::new(\"git\"); }\n";
        check(
            git_calls,
            "crates/conductor/src/wire.rs",
            text,
            &[(2, "only crates/conductor-git/src/call.rs may start git (S-9)")],
        );
        check(
            git_calls,
            "crates/conductor-git/src/base.rs",
            text,
            &[(2, "only crates/conductor-git/src/call.rs may start git (S-9)")],
        );
        check(git_calls, "crates/conductor-git/src/call.rs", text, &[]);
        check(git_calls, "crates/conductor-forge/src/git.rs", text, &[]);
        check(git_calls, "crates/conductor-git/tests/hostile.rs", text, &[]);
        check(
            git_calls,
            "crates/conductor/src/wire.rs",
            "// Command::new(\"git\")\n",
            &[],
        );
    }

    #[test]
    fn a_registry_host_is_found_in_any_file() {
        let sample = |name: &str, end: &str| format!("a\nurl = \"https://index.{name}.{end}/x\"\n");
        for (name, end) in [
            ("crates", "io"),
            ("npmjs", "org"),
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("debian", "org"),
        ] {
            let found = format!("`index.{name}.{end}` is a package registry's host");
            check(registry_hosts, "deny.toml", &sample(name, end), &[(2, &found)]);
        }
        check(
            registry_hosts,
            "README.md",
            "std::io, example.org, github.com and conductor.example.com\n",
            &[],
        );
    }

    #[test]
    fn a_path_of_a_build_machine_is_found_in_any_file() {
        for top in ["work", "farm", "root"] {
            let found = format!("`/{top}/` is a path of a build machine");
            check(
                machine_paths,
                "README.md",
                &format!("cd /{top}/main\n"),
                &[(1, &found)],
            );
            check(
                machine_paths,
                "a.rs",
                &format!("//! A.\nconst A: &str = \"/{top}/x\";\n"),
                &[(2, &found)],
            );
            check(
                machine_paths,
                "a.md",
                &format!("frame{top}/x a/b-/{top}/ docs/{top}s\n"),
                &[],
            );
            check(machine_paths, "a.rs", &format!("view(\"/{top}/.ssh/id\")\n"), &[]);
        }
    }
}
