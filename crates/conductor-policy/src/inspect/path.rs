//! What a path alone says: forbidden, for an environment, part of the test harness, covered by a plan.
//!
//! Paths are compared without case, since the forge and some file systems do so. This module does not read files,
//! except the two that hold both data and commands.

use serde_json::Value;
use toml::Table;

use crate::supply::beside;

/// Tells whether a path changes what runs at the forge, who must review, or how the forge behaves.
pub(super) fn is_forbidden(path: &str) -> bool {
    const DIRECTORIES: [&str; 4] = [".github/workflows", ".github/actions", ".gitlab/ci", ".circleci"];
    const FILES: [&str; 12] = [
        "codeowners",
        ".github/codeowners",
        "docs/codeowners",
        ".gitlab/codeowners",
        ".github/settings.yml",
        ".github/settings.yaml",
        ".github/dependabot.yml",
        ".github/dependabot.yaml",
        ".gitlab-ci.yml",
        "azure-pipelines.yml",
        "jenkinsfile",
        ".travis.yml",
    ];
    let path = path.to_lowercase();
    FILES.contains(&path.as_str())
        || DIRECTORIES.iter().any(|directory| {
            path.strip_prefix(directory)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

/// Tells whether the file sets an environment's variables; templates of such files are fine.
pub(super) fn is_environment(path: &str) -> bool {
    let name = last(path).to_lowercase();
    let is_template = ["example", "sample", "template", "dist"]
        .iter()
        .any(|end| name.ends_with(end));
    (name == ".env" || name.starts_with(".env.")) && !is_template
}

/// Says why a file is part of the test harness (S-19): whoever changes it can change what "the tests passed" means.
pub(super) fn harness(path: &str, before: &[u8], after: &[u8]) -> Option<&'static str> {
    const FILES: [(&str, &str); 45] = [
        ("build.rs", "runs when the tests are built"),
        ("conftest.py", "runs before the tests"),
        ("makefile", "holds the commands that tests are run by"),
        ("gnumakefile", "holds the commands that tests are run by"),
        ("justfile", "holds the commands that tests are run by"),
        (".justfile", "holds the commands that tests are run by"),
        ("cmakelists.txt", "holds the commands that tests are run by"),
        ("rakefile", "holds the commands that tests are run by"),
        ("rakefile.rb", "holds the commands that tests are run by"),
        ("taskfile.yml", "holds the commands that tests are run by"),
        ("taskfile.yaml", "holds the commands that tests are run by"),
        ("taskfile.dist.yml", "holds the commands that tests are run by"),
        ("taskfile.dist.yaml", "holds the commands that tests are run by"),
        ("sitecustomize.py", "runs whenever Python starts"),
        ("usercustomize.py", "runs whenever Python starts"),
        ("tox.ini", "configures the test runner"),
        ("tox.toml", "configures the test runner"),
        ("noxfile.py", "configures the test runner"),
        ("pytest.ini", "configures the test runner"),
        (".pytest.ini", "configures the test runner"),
        ("pytest.toml", "configures the test runner"),
        (".pytest.toml", "configures the test runner"),
        ("setup.cfg", "configures the test runner"),
        ("setup.py", "runs when the package is installed"),
        ("phpunit.xml", "configures the test runner"),
        ("phpunit.xml.dist", "configures the test runner"),
        ("phpunit.dist.xml", "configures the test runner"),
        (".bazelrc", "says which flags and wrappers tests are run with"),
        (".rspec", "configures the test runner"),
        (".mocharc", "configures the test runner"),
        (
            ".npmrc",
            "says which shell, flags and registry scripts are run with",
        ),
        (".yarnrc", "says which program stands for the package manager"),
        (".yarnrc.yml", "says which program stands for the package manager"),
        (".pnpmfile.cjs", "runs when packages are installed"),
        (".pnpmfile.mjs", "runs when packages are installed"),
        ("bunfig.toml", "configures the test runner"),
        ("nextest.toml", "configures the test runner"),
        ("rust-toolchain", "chooses the toolchain"),
        ("rust-toolchain.toml", "chooses the toolchain"),
        (".nvmrc", "chooses the toolchain"),
        (".tool-versions", "chooses the toolchain"),
        ("gradlew", "runs the build"),
        ("gradle-wrapper.properties", "chooses what runs the build"),
        ("mvnw", "runs the build"),
        ("build.gradle", "holds the commands that tests are run by"),
    ];
    const RUNNERS: [&str; 9] = [
        "jest.config.",
        "vite.config.",
        "vitest.config.",
        "vitest.workspace.",
        ".mocharc.",
        "karma.conf.",
        "playwright.config.",
        "cypress.config.",
        "ava.config.",
    ];
    let whole = path.to_lowercase();
    let name = last(&whole);
    if whole.ends_with(".cargo/config.toml") || whole.ends_with(".cargo/config") {
        return Some("configures cargo: runners, wrappers, flags");
    }
    // Only a link can stand where a directory is looked for, and lead to a configuration of another name.
    if name == ".cargo" {
        return Some("stands where cargo looks for its configuration");
    }
    if whole.starts_with(".mvn/") || whole.contains("/.mvn/") {
        return Some("configures what runs the build");
    }
    if matches!(name.rsplit_once('.'), Some((_, "just" | "cmake" | "mk"))) {
        return Some("holds the commands that tests are run by");
    }
    if name == "package.json" {
        let is_same = is_same(scripts(before), scripts(after));
        return (!is_same).then_some("its scripts changed");
    }
    if name == "pyproject.toml" {
        let is_same = is_same(steering(before), steering(after));
        return (!is_same).then_some("its settings of tools, or of the build, changed");
    }
    if RUNNERS.iter().any(|begin| name.starts_with(begin)) {
        return Some("configures the test runner");
    }
    FILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, why)| *why)
}

/// Tells whether a test command names the file, in one of its arguments or in a line of a shell: what the tests are is then
/// the file's to say (S-19). The command is run where the repository begins.
pub(super) fn is_named_by(command: &[String], path: &str) -> bool {
    let path = path.to_lowercase();
    let is_between = |letter: char| letter.is_whitespace() || "\"'`=;&|()<>{},:".contains(letter);
    let words = command
        .iter()
        .flat_map(|argument| argument.split(is_between).chain([argument.as_str()]));
    words.map(str::to_lowercase).any(|word| plain(&word) == path)
}

/// Says a path in the one way that git and policies know: `./a//b/../c` is `a/c`.
pub(crate) fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Compares what was read; of two that cannot be read nobody knows that they are the same.
fn is_same<T: PartialEq>(before: Option<T>, after: Option<T>) -> bool {
    before.zip(after).is_some_and(|(before, after)| before == after)
}

/// Reads the commands of a `package.json`; one that cannot be read counts as having others.
fn scripts(manifest: &[u8]) -> Option<Value> {
    if manifest.is_empty() {
        return Some(Value::Null);
    }
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let keys = ["scripts", "jest", "mocha", "ava", "vitest"];
    Some(
        keys.iter()
            .map(|key| manifest.get(*key).cloned().unwrap_or(Value::Null))
            .collect(),
    )
}

/// Reads what a `pyproject.toml` steers: all that is neither a dependency nor words about the project. Which tools run tests
/// nobody can list: the runner's options, the build's backend, an entry point that the runner loads, an environment's
/// commands all do. `None`: it cannot be read.
fn steering(manifest: &[u8]) -> Option<Table> {
    const WORDS: [&str; 16] = [
        "name",
        "version",
        "description",
        "readme",
        "authors",
        "maintainers",
        "keywords",
        "classifiers",
        "license",
        "license-files",
        "urls",
        "homepage",
        "repository",
        "documentation",
        "copyright",
        "requires-poetry",
    ];
    let mut rest = beside::pyproject(std::str::from_utf8(manifest).ok()?)?;
    for word in WORDS {
        beside::remove(&mut rest, &["project", word]);
        beside::remove(&mut rest, &["tool", "poetry", word]);
    }
    Some(rest)
}

/// Tells whether a file of this name is written and read by people, or run as it stands: none that holds zeros is what it says.
pub(super) fn is_text(path: &str) -> bool {
    const NAMES: [&str; 16] = [
        "makefile",
        "gnumakefile",
        "justfile",
        "rakefile",
        "gemfile",
        "pipfile",
        "podfile",
        "dockerfile",
        "containerfile",
        "jenkinsfile",
        "vagrantfile",
        "procfile",
        "gradlew",
        "mvnw",
        "readme",
        "license",
    ];
    const ENDINGS: &str = "adb ads adoc asm asp aspx astro awk bash bat bazel bzl c cc cfg cjs clj cljs cmake cmd conf cpp cs \
        cshtml csproj css csv cts cxx d dart diff dockerfile edn el elm erl ex exs f90 fish fs fsproj fsx gd gemspec go gql \
        gradle graphql groovy h hbs hcl hh hpp hrl hs htm html hxx in inc ini ipynb java jl js json json5 jsonc jsonl jsp jsx \
        just kt kts less lock lua m m4 md mdx mjs mk ml mli mm mod mts nim nix nu patch php pl pm po pom properties props proto \
        ps1 psd1 psm1 py pyi pyx r rake rb rego rs rst sass sbt scala scss sh sol sql star sum sv svelte svg swift targets tcl \
        tex tf tfvars toml ts tsv tsx txt v vb vhd vim vue wat work xml xsd xsl yaml yml zig zsh";
    let name = last(path).to_lowercase();
    // A hidden file without an ending of its own configures something.
    let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, ""));
    let is_configuration = stem.is_empty() && !ending.is_empty() && ending != "ds_store";
    is_configuration
        || NAMES.contains(&name.as_str())
        || ENDINGS.split_whitespace().any(|known| known == ending)
}

/// Tells whether a planned path covers a changed one; a plan may name a directory with a `/` at its end (S-51).
pub(super) fn covers(planned: &str, path: &str) -> bool {
    planned == path || (planned.ends_with('/') && path.starts_with(planned))
}

/// Tells whether the path can be taken for another: one of its words holds letters of Latin and of a script that looks like it,
/// or the path is Latin but for letters that look as if they were. Where other letters stand among those, they are a language's.
pub(super) fn mixes_scripts(path: &str) -> bool {
    let looks_alike = |letter: char| matches!(letter, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{530}'..='\u{58f}');
    let is_mixed = path
        .split(|letter: char| !letter.is_alphanumeric())
        .any(|part| part.chars().any(|letter| letter.is_ascii_alphabetic()) && part.chars().any(looks_alike));
    let is_latin = |letter: char| letter.is_ascii() || matches!(letter, '\u{c0}'..='\u{24f}');
    let letters = || path.chars().filter(|letter| letter.is_alphanumeric());
    let is_disguised = letters().any(|letter| letter.is_ascii_alphabetic())
        && letters().any(|letter| !is_latin(letter))
        && letters().all(|letter| is_latin(letter) || is_twin(letter));
    is_mixed || is_disguised
}

/// Tells whether a letter looks like one of Latin: a twin in Cyrillic, Greek or Armenian, a wide or a mathematical one.
fn is_twin(letter: char) -> bool {
    const CYRILLIC: &str = "асеорхуіјѕһԁԛԝѵкгАВЕКМНОРСТХУІЈЅҺԀԚԜѴ";
    const GREEK: &str = "αγικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ";
    const ARMENIAN: &str = "աոսօհցզյգքՕՍԼ";
    [CYRILLIC, GREEK, ARMENIAN]
        .iter()
        .any(|twins| twins.contains(letter))
        || matches!(letter, '\u{ff10}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
