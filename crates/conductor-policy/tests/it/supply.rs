//! Dependencies that come, go and change, in the files of every ecosystem that is read.

use conductor_policy::supply::{ChangedFile, compare, is_manifest, is_plain, only_dependencies_changed};

fn check(path: &str, before: &str, after: &str, expected: &[&str]) {
    let change = compare(&[ChangedFile {
        path,
        before: before.as_bytes(),
        after: after.as_bytes(),
    }]);
    let rendered = change.render();
    let lines: Vec<&str> = rendered.lines().collect();
    assert_eq!(lines, expected, "{path}");
}

/// SEC-5.
#[test]
fn cargo() {
    check(
        "Cargo.toml",
        "[dependencies]\nserde = \"1\"\nold = { version = \"2\", features = [\"x\"] }\n",
        "[dependencies]\nserde = \"1.0.200\"\nrenamed = { package = \"real\", git = \"https://git.example.com/r\", rev = \"ab\" }\n\
         [target.'cfg(unix)'.dev-dependencies]\nnix = { workspace = true }\n[workspace.dependencies]\ntokio = \"1\"\n\
         [patch.crates-index]\nserde = { path = \"evil\" }\n",
        &[
            "added cargo nix workspace in Cargo.toml",
            "added cargo real git https://git.example.com/r rev ab in Cargo.toml",
            "added cargo tokio 1 in Cargo.toml",
            "changed cargo serde 1 to 1.0.200, patch path evil in Cargo.toml",
            "removed cargo old 2 in Cargo.toml",
        ],
    );
    let package = |name: &str, version: &str, source: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}\n")
    };
    let registry = "source = \"registry+https://index.example.com\"";
    check(
        "a/Cargo.lock",
        &(package("own", "1.0.0", "") + &package("rand", "0.8.5", registry)),
        &(package("own", "2.0.0", "")
            + &package("rand", "0.8.5", registry)
            + &package("rand", "0.9.0", registry)
            + &package(
                "git-dep",
                "0.1.0",
                "source = \"git+https://git.example.com/x#abc\"",
            )),
        &[
            "added cargo git-dep 0.1.0 from git+https://git.example.com/x#abc in a/Cargo.lock",
            "changed cargo rand 0.8.5 to 0.8.5, 0.9.0 in a/Cargo.lock",
        ],
    );
}

/// SEC-5.
#[test]
fn javascript() {
    check(
        "package.json",
        r#"{"dependencies": {"a": "^1"}}"#,
        r#"{"dependencies": {"a": "^1"}, "devDependencies": {"left-pad": "1.3.0"}, "overrides": {"a": {"b": "2"}}}"#,
        &[
            "added npm left-pad 1.3.0 in package.json",
            "changed npm a ^1 to ^1, {\"b\":\"2\"} in package.json",
        ],
    );
    check(
        "package-lock.json",
        r#"{"packages": {"": {"name": "own"}, "node_modules/a": {"version": "1.0.0"}}}"#,
        r#"{"packages": {"": {"name": "own"}, "node_modules/a": {"version": "1.0.1"},
            "node_modules/a/node_modules/@s/b": {"version": "3.0.0"}}}"#,
        &[
            "added npm @s/b 3.0.0 in package-lock.json",
            "changed npm a 1.0.0 to 1.0.1 in package-lock.json",
        ],
    );
    check(
        "package-lock.json",
        "",
        r#"{"lockfileVersion": 1, "dependencies": {"a": {"version": "1", "dependencies": {"b": {"version": "2"}}}}}"#,
        &[
            "added npm a 1 in package-lock.json",
            "added npm b 2 in package-lock.json",
        ],
    );
    check(
        "yarn.lock",
        "# yarn lockfile v1\n\nleft-pad@^1.3.0:\n  version \"1.3.0\"\n  resolved \"x\"\n",
        "# yarn lockfile v1\n\nleft-pad@^1.3.0:\n  version \"1.3.1\"\n\n\"@s/n@^1\", \"@s/n@^1.2\":\n  version \"1.2.0\"\n  dependencies:\n    version \"9\"\n",
        &[
            "added npm @s/n 1.2.0 in yarn.lock",
            "changed npm left-pad 1.3.0 to 1.3.1 in yarn.lock",
        ],
    );
    check(
        "yarn.lock",
        "",
        "__metadata:\n  version: 8\n\n\"chalk@npm:^5\":\n  version: 5.3.0\n  resolution: \"chalk@npm:5.3.0\"\n",
        &["added npm chalk 5.3.0 in yarn.lock"],
    );
    check(
        "pnpm-lock.yaml",
        "",
        "lockfileVersion: '9.0'\nimporters:\n  .:\n    x: 1\npackages:\n\n  '@s/n@1.0.0':\n    resolution: {}\n  /old/2.0.0:\n    dev: true\n  c@3.0.0(d@1): {}\nsnapshots:\n  e@1:\n",
        &[
            "added npm @s/n 1.0.0 in pnpm-lock.yaml",
            "added npm c 3.0.0 in pnpm-lock.yaml",
            "added npm e 1 in pnpm-lock.yaml",
            "added npm old 2.0.0 in pnpm-lock.yaml",
        ],
    );
}

/// SEC-5.
#[test]
fn python() {
    check(
        "pyproject.toml",
        "[project]\ndependencies = [\"requests>=2\"]\n",
        "[project]\ndependencies = [\"Requests>=2\", \"typing_extensions[x] ~=4; python_version<'3.9'\", \"u @ https://example.com/u.whl\"]\n\
         [dependency-groups]\ntest = [\"pytest\"]\n[tool.poetry.group.dev.dependencies]\nblack = \"^24\"\n",
        &[
            "added pypi black ^24 in pyproject.toml",
            "added pypi pytest any in pyproject.toml",
            "added pypi typing-extensions ~=4 in pyproject.toml",
            "added pypi u @ https://example.com/u.whl in pyproject.toml",
        ],
    );
    check(
        "requirements-dev.txt",
        "# comment\nflask==2.0 # why\n",
        "flask==2.1 \\\n  --hash=sha256:aa\n-r other.txt\n--index-url https://evil.example.com\n",
        &[
            "added pypi --index-url --index-url https://evil.example.com in requirements-dev.txt",
            "added pypi -r -r other.txt in requirements-dev.txt",
            "changed pypi flask ==2.0 to ==2.1 in requirements-dev.txt",
        ],
    );
    check(
        "uv.lock",
        "",
        "[[package]]\nname = \"own\"\nversion = \"1\"\nsource = { editable = \".\" }\n[[package]]\nname = \"attrs\"\nversion = \"23\"\nsource = { registry = \"x\" }\n",
        &["added pypi attrs 23 from registry x in uv.lock"],
    );
    check(
        "Pipfile.lock",
        "",
        r#"{"default": {"a": {"version": "==1"}}, "develop": {}}"#,
        &["added pypi a ==1 in Pipfile.lock"],
    );
}

/// SEC-5.
#[test]
fn go_ruby_and_php() {
    check(
        "go.mod",
        "module m\n\nrequire github.com/a/b v1.0.0\n",
        "module m\n\nrequire (\n\tgithub.com/a/b v1.1.0\n\tgithub.com/c/d v0.1.0 // indirect\n)\nreplace github.com/a/b => ../evil\n",
        &[
            "added go github.com/c/d v0.1.0 in go.mod",
            "changed go github.com/a/b v1.0.0 to replaced by ../evil, v1.1.0 in go.mod",
        ],
    );
    check(
        "go.sum",
        "",
        "github.com/a/b v1.0.0 h1:x=\ngithub.com/a/b v1.0.0/go.mod h1:y=\n",
        &["added go github.com/a/b v1.0.0 in go.sum"],
    );
    check(
        "Gemfile",
        "source 'https://gems.example.com'\ngem 'rails', '~> 7'\n",
        "source 'https://evil.example.com'\ngem 'rails', '~> 7'\ngem \"rake\"\n",
        &[
            "added rubygems rake any in Gemfile",
            "changed rubygems source 'https://gems.example.com' to 'https://evil.example.com' in Gemfile",
        ],
    );
    check(
        "Gemfile.lock",
        "",
        "GEM\n  specs:\n    rake (13.0.6)\n    rails (7.0)\n      rake (>= 12)\n\nPLATFORMS\n  ruby\n",
        &[
            "added rubygems rails 7.0 in Gemfile.lock",
            "added rubygems rake 13.0.6 in Gemfile.lock",
        ],
    );
    check(
        "composer.json",
        "",
        r#"{"require": {"php": "^8", "a/b": "1.0"}}"#,
        &[
            "added composer a/b 1.0 in composer.json",
            "added composer php ^8 in composer.json",
        ],
    );
    check(
        "composer.lock",
        "",
        r#"{"packages": [{"name": "a/b", "version": "1.0"}], "packages-dev": []}"#,
        &["added composer a/b 1.0 in composer.lock"],
    );
}

/// SEC-5: where half comes from is not where most comes from: both places are shown.
#[test]
fn half_is_not_most() {
    let package = |name: &str, source: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\nsource = \"registry+https://{source}.example.org\"\n"
        )
    };
    let before = package("a", "one") + &package("b", "two");
    check(
        "Cargo.lock",
        &before,
        &(before.clone() + &package("c", "one") + &package("d", "two")),
        &[
            "added cargo c 1.0.0 from registry+https://one.example.org in Cargo.lock",
            "added cargo d 1.0.0 from registry+https://two.example.org in Cargo.lock",
        ],
    );
}

/// SEC-5: hostile: the same name in the same version, from elsewhere, is another dependency; where most came from before is not
/// shown.
#[test]
fn a_source_that_moved_is_a_dependency_that_changed() {
    let crates =
        |source: &str| format!("[[package]]\nname = \"rand\"\nversion = \"0.8.5\"\nsource = \"{source}\"\n");
    let usual = crates("registry+https://crates.example.org");
    check(
        "Cargo.lock",
        &usual,
        &crates("registry+https://evil.example.com"),
        &["changed cargo rand 0.8.5 to 0.8.5 from registry+https://evil.example.com in Cargo.lock"],
    );
    let npm = |resolved: &str| {
        format!(
            r#"{{"packages": {{"node_modules/@s/a": {{"version": "1.0.0", "resolved": "{resolved}"}}}}}}"#
        )
    };
    let usual = npm("https://npm.example.org/@s/a/-/a-1.0.0.tgz");
    check(
        "package-lock.json",
        r#"{"packages": {"node_modules/@s/a": {"version": "1.0.0"}}}"#,
        &usual,
        &["changed npm @s/a 1.0.0 to 1.0.0 from https://npm.example.org in package-lock.json"],
    );
    for (evil, shown) in [
        (
            "https://evil.example.com/@s/a/-/a-1.0.0.tgz",
            "https://evil.example.com",
        ),
        (
            "https://npm.example.org/evil/-/evil-1.0.0.tgz",
            "https://npm.example.org/evil/-/evil-1.0.0.tgz",
        ),
        (
            "git+ssh://git@git.example.com/a.git#abc",
            "git+ssh://git@git.example.com/a.git#abc",
        ),
    ] {
        let expected = format!("changed npm @s/a 1.0.0 to 1.0.0 from {shown} in package-lock.json");
        check("package-lock.json", &usual, &npm(evil), &[&expected]);
        let old = |resolved: &str| {
            format!(r#"{{"dependencies": {{"@s/a": {{"version": "1.0.0", "resolved": "{resolved}"}}}}}}"#)
        };
        let usual = old("https://npm.example.org/@s/a/-/a-1.0.0.tgz");
        check("package-lock.json", &usual, &old(evil), &[&expected]);
    }
    let yarn = |resolved: &str| format!("a@^1:\n  version \"1.0.0\"\n  resolved \"{resolved}\"\n");
    check(
        "yarn.lock",
        &yarn("https://npm.example.org/a/-/a-1.0.0.tgz#hash"),
        &yarn("https://evil.example.com/a/-/a-1.0.0.tgz#hash"),
        &["changed npm a 1.0.0 to 1.0.0 from https://evil.example.com in yarn.lock"],
    );
    check(
        "yarn.lock",
        "\"a@npm:^1\":\n  version: 1.0.0\n  resolution: \"a@npm:1.0.0\"\n",
        "\"a@npm:^1\":\n  version: 1.0.0\n  resolution: \"a@https://evil.example.com/a.git\"\n",
        &["changed npm a 1.0.0 to 1.0.0 from a@https://evil.example.com/a.git in yarn.lock"],
    );
    let pnpm = |resolution: &str| format!("packages:\n  a@1.0.0:\n    resolution: {{{resolution}}}\n");
    check(
        "pnpm-lock.yaml",
        &pnpm("integrity: x"),
        &pnpm("integrity: x, tarball: https://evil.example.com/a.tgz"),
        &["changed npm a 1.0.0 to 1.0.0, 1.0.0 from https://evil.example.com/a.tgz in pnpm-lock.yaml"],
    );
}

/// SEC-5: hostile: the same of the lock files of Python, Ruby and PHP.
#[test]
fn a_source_that_moved_is_seen_in_every_lock_file() {
    let uv = |source: &str, host: &str| {
        format!(
            "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = {{ {source} }}\n\
             wheels = [{{ url = \"https://{host}/packages/a.whl\" }}]\n"
        )
    };
    let (index, files) = ("registry = \"https://python.example.org\"", "files.example.org");
    let usual = uv(index, files);
    check(
        "uv.lock",
        "[[package]]\nname = \"a\"\nversion = \"1\"\n",
        &usual,
        &[
            "changed pypi a 1 to 1 from https://files.example.org from registry https://python.example.org in uv.lock",
        ],
    );
    check(
        "uv.lock",
        &usual,
        &uv("registry = \"https://evil.example.com\"", files),
        &[
            "changed pypi a 1 to 1 from https://files.example.org from registry https://evil.example.com in uv.lock",
        ],
    );
    check(
        "uv.lock",
        &usual,
        &uv(index, "evil.example.com"),
        &[
            "changed pypi a 1 to 1 from https://evil.example.com from registry https://python.example.org in uv.lock",
        ],
    );
    check(
        "poetry.lock",
        "[[package]]\nname = \"a\"\nversion = \"1\"\n",
        "[[package]]\nname = \"a\"\nversion = \"1\"\n[package.source]\ntype = \"legacy\"\nurl = \"https://evil.example.com\"\n",
        &["changed pypi a 1 to 1 from type legacy url https://evil.example.com in poetry.lock"],
    );
    check(
        "Pipfile.lock",
        r#"{"_meta": {"sources": [{"url": "https://python.example.org"}]}, "default": {"a": {"version": "==1", "index": "pypi"}}}"#,
        r#"{"_meta": {"sources": [{"url": "https://evil.example.com"}]}, "default": {"a": {"version": "==1", "index": "evil"}}}"#,
        &[
            "changed pypi a ==1 to ==1 from index evil in Pipfile.lock",
            "changed pypi index https://python.example.org to https://evil.example.com in Pipfile.lock",
        ],
    );
    let gems =
        |kind: &str, remote: &str| format!("{kind}\n  remote: {remote}\n  specs:\n    rake (13.0.6)\n");
    check(
        "Gemfile.lock",
        &gems("GEM", "https://gems.example.org/"),
        &gems("GIT", "https://evil.example.com/rake.git\n  revision: abc"),
        &[
            "changed rubygems rake 13.0.6 to 13.0.6 from https://evil.example.com/rake.git abc in Gemfile.lock",
        ],
    );
    let composer = |url: &str| {
        format!(r#"{{"packages": [{{"name": "a/b", "version": "1.0", "dist": {{"url": "{url}"}}}}]}}"#)
    };
    check(
        "composer.lock",
        &composer("https://example.com/a.zip"),
        &composer("https://evil.example.com/a.zip"),
        &["changed composer a/b 1.0 to 1.0 from https://evil.example.com/a.zip in composer.lock"],
    );
}

/// SEC-5: hostile: what is usual is what most came from before the change, and never what the change itself says.
#[test]
fn no_change_says_what_is_usual() {
    let lock = |sources: &[&str]| -> String {
        let packages = sources.iter().enumerate().map(|(number, source)| {
            format!("[[package]]\nname = \"p{number}\"\nversion = \"1\"\nsource = \"{source}\"\n")
        });
        packages.collect()
    };
    let before = lock(&["a", "a", "b"]);
    check(
        "Cargo.lock",
        &before,
        &lock(&["b", "a", "b", "a"]),
        &[
            "added cargo p3 1 in Cargo.lock",
            "changed cargo p0 1 to 1 from b in Cargo.lock",
        ],
    );
    check(
        "Cargo.lock",
        &before,
        &lock(&["evil", "evil", "evil"]),
        &[
            "changed cargo p0 1 to 1 from evil in Cargo.lock",
            "changed cargo p1 1 to 1 from evil in Cargo.lock",
            "changed cargo p2 1 from b to 1 from evil in Cargo.lock",
        ],
    );
    check(
        "Cargo.lock",
        "",
        &lock(&["evil", "evil"]),
        &[
            "added cargo p0 1 from evil in Cargo.lock",
            "added cargo p1 1 from evil in Cargo.lock",
        ],
    );
    check(
        "Cargo.lock",
        &lock(&["a", "b"]),
        &lock(&["a", "c"]),
        &["changed cargo p1 1 from b to 1 from c in Cargo.lock"],
    );
}

/// SEC-5: hostile: a dependency that is written as its tool reads it, and as few people write it, is seen.
#[test]
fn an_odd_spelling_hides_no_dependency() {
    for block in ["require(", "require\t(", "require   (", "require ( // more"] {
        check(
            "go.mod",
            "module m\n",
            &format!("module m\n{block}\n\tevil.example.com/a\tv1.0.0 // indirect\n)\ngo 1.22\n"),
            &["added go evil.example.com/a v1.0.0 in go.mod"],
        );
    }
    for line in [
        "require evil.example.com/a  v1.0.0",
        "require\tevil.example.com/a\tv1.0.0",
        "require \"evil.example.com/a\" v1.0.0",
    ] {
        check(
            "go.mod",
            "module m\n",
            &format!("module m\n{line}\n"),
            &["added go evil.example.com/a v1.0.0 in go.mod"],
        );
    }
    check(
        "go.mod",
        "module m\n",
        "module m\nreplace(\n\ta.example.com/b v1 => ../evil\n)\n",
        &["added go a.example.com/b replaced by ../evil in go.mod"],
    );
    check(
        "Cargo.toml",
        "",
        "[dev_dependencies]\na = \"1\"\n[build_dependencies]\nb = \"2\"\n[target.'cfg(unix)'.build_dependencies]\nc = \"3\"\n\
         [replace]\n\"d:0.1.0\" = { git = \"https://evil.example.com/d\" }\n",
        &[
            "added cargo a 1 in Cargo.toml",
            "added cargo b 2 in Cargo.toml",
            "added cargo c 3 in Cargo.toml",
            "added cargo d replaced by git https://evil.example.com/d in Cargo.toml",
        ],
    );
    check(
        "pyproject.toml",
        "",
        "[tool.uv]\ndev-dependencies = [\"a>=1\"]\noverride-dependencies = [\"b==2\"]\n\
         [tool.uv.sources]\nc = { git = \"https://evil.example.com/c\" }\n\
         [[tool.uv.index]]\nurl = \"https://evil.example.com\"\n\
         [tool.pdm.dev-dependencies]\ntest = [\"d\"]\n[dependency-groups]\ndev = [\"e\", { include-group = \"x\" }]\n\
         [tool.hatch.envs.lint]\ndependencies = [\"f\"]\n",
        &[
            "added pypi a >=1 in pyproject.toml",
            "added pypi b ==2 in pyproject.toml",
            "added pypi c source git https://evil.example.com/c in pyproject.toml",
            "added pypi d any in pyproject.toml",
            "added pypi e any in pyproject.toml",
            "added pypi f any in pyproject.toml",
            "added pypi index url https://evil.example.com in pyproject.toml",
        ],
    );
    for line in ["gem'evil'", "gem \"evil\"", "gem('evil')", "  gem\t'evil'"] {
        check("Gemfile", "", line, &["added rubygems evil any in Gemfile"]);
    }
    check("Gemfile", "", "# gem 'rake'\nruby '3.3'\n", &[]);
    check(
        "Gemfile",
        "",
        "gem 'gem-release'\nsource 'https://gem.example.com'\n",
        &[
            "added rubygems gem-release any in Gemfile",
            "added rubygems source 'https://gem.example.com' in Gemfile",
        ],
    );
    for hostile in [
        "group(:a) { gem \"evil\" }",
        "source('https://gems.example.org') { gem 'evil' }",
        "gem 'rake'; gem 'evil'",
        "gem name, '1'",
        "send(:gem, 'evil')",
        "if true then gem 'evil' end",
    ] {
        check(
            "Gemfile",
            "",
            &format!("ruby '3.3'\n{hostile}\n"),
            &["unread Gemfile: line 2 speaks of a gem and is no plain `gem`"],
        );
    }
}

/// SEC-5: what cannot be read is never taken for "nothing new".
#[test]
fn what_cannot_be_read_is_listed_and_needs_approval() {
    for (path, after) in [
        ("Cargo.toml", "not toml ["),
        ("package.json", "{"),
        ("pom.xml", "<project/>"),
        ("app/build.gradle.kts", "x"),
        ("x.csproj", "<Project/>"),
        ("yarn.lock", "garbage@x"),
        ("Cargo.lock", "version = 4"),
        ("pnpm-workspace.yaml", "packages: [a]"),
        ("go.work", "use ./evil"),
        ("pylock.toml", "lock-version = '1.0'"),
        ("pylock.dev.toml", "lock-version = '1.0'"),
        ("uv.toml", "index-url = 'x'"),
        ("environment.yaml", "name: x"),
        ("deno.jsonc", "{}"),
        ("NuGet.config", "<configuration/>"),
        ("NuGet.Config", "<configuration/>"),
        ("Directory.Build.props", "<Project/>"),
        ("Directory.Build.targets", "<Project/>"),
        ("gradle/wrapper/gradle-wrapper.properties", "distributionUrl=x"),
        (".mvn/extensions.xml", "<extensions/>"),
        ("a/.mvn/extensions.xml", "<extensions/>"),
    ] {
        let change = compare(&[ChangedFile {
            path,
            before: b"",
            after: after.as_bytes(),
        }]);
        assert_eq!(change.unread.keys().collect::<Vec<_>>(), [path]);
        assert!(change.needs_approval() && is_manifest(path));
    }
    let binary = compare(&[ChangedFile {
        path: "go.sum",
        before: b"",
        after: &[0xff, 0xfe],
    }]);
    assert!(binary.needs_approval());
    assert!(!is_manifest("src/package.json.rs") && !is_manifest("docs/requirements.md"));
}

/// SEC-5: every file of every ecosystem that is known by its name, at any depth, and nothing that is only called alike.
#[test]
fn manifests_and_lock_files_are_known_by_name() {
    for name in [
        "npm-shrinkwrap.json",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "Pipfile.lock",
        "go.mod",
        "Gemfile",
        "composer.json",
        "settings.gradle",
        "gradle.lockfile",
        "libs.versions.toml",
        "build.sbt",
        "packages.config",
        "packages.lock.json",
        "Directory.Packages.props",
        "Pipfile",
        "setup.py",
        "setup.cfg",
        "environment.yml",
        "bun.lock",
        "bun.lockb",
        "deno.json",
        "deno.lock",
        "mix.exs",
        "mix.lock",
        "pubspec.yaml",
        "pubspec.lock",
        "Package.swift",
        "Package.resolved",
        "Podfile",
        "Podfile.lock",
        "flake.nix",
        "flake.lock",
        ".terraform.lock.hcl",
        "x.csproj",
        "x.fsproj",
        "x.gemspec",
        "requirements.txt",
        "requirements-dev.in",
        "requirements/base.txt",
        "requirements/base.in",
        "dev-requirements.txt",
        "Requirements.txt",
        "test-requirements.txt",
        "test_requirements_ci.in",
        "constraints.txt",
        "constraints-dev.txt",
        "gems.rb",
        "gems.locked",
        "go.work.sum",
        "nuget.config",
        "gradle/deps.gradle",
        "buildSrc/src/main/groovy/java-conventions.gradle",
        "conventions.gradle.kts",
        "project/plugins.sbt",
        "kotlin.versions.toml",
        "deps.edn",
        "project.clj",
        "ivy.xml",
        "x.vbproj",
        "own.props",
        "own.targets",
        "package.yaml",
        "package.json5",
        ".pnpmfile.cjs",
        "conanfile.txt",
        "conanfile.py",
        "conan.lock",
        "vcpkg.json",
        "vcpkg-configuration.json",
        "MODULE.bazel",
        "MODULE.bazel.lock",
        "WORKSPACE",
        "WORKSPACE.bazel",
        "stack.yaml",
        "stack.yaml.lock",
        "cabal.project",
        "x.cabal",
        "cabal.project.freeze",
        "cabal.project.local",
        "requirements.lock",
        "requirements-dev.lock",
        "paket.dependencies",
        "paket.lock",
        ".config/dotnet-tools.json",
        "rebar.config",
        "rebar.lock",
        "renv.lock",
        "Cartfile",
        "Cartfile.private",
        "Cartfile.resolved",
        "pixi.toml",
        "pixi.lock",
        "build.zig.zon",
        "requirements.yml",
        "requirements.yaml",
        ".pnpmfile.mjs",
    ] {
        assert!(is_manifest(name) && is_manifest(&format!("a/b/{name}")), "{name}");
    }
    for other in [
        "requirements.md",
        "requirements/base.md",
        "notes.txt",
        "a/notes.txt",
        "csproj",
        "gradle",
        "versions.toml",
        "cargo.toml.bak",
        "extensions.xml",
        "mvn/extensions.xml",
        "x.mvn/extensions.xml",
        "pylock.md",
        "requirements.txt/a.md",
        "docs/requirements/a.yml",
        "src/lib.rs",
    ] {
        assert!(!is_manifest(other), "{other}");
    }
}

/// SEC-5: hostile: a manifest under its less usual name is read as under the usual one.
#[test]
fn less_usual_names_are_read_alike() {
    for path in [
        "dev-requirements.txt",
        "Requirements.txt",
        "test-requirements.txt",
        "a/constraints.txt",
        "requirements.lock",
        "requirements-dev.lock",
    ] {
        check(
            path,
            "",
            "evil==1\n",
            &[&format!("added pypi evil ==1 in {path}")],
        );
    }
    check(
        "gems.rb",
        "",
        "gem 'evil'\n",
        &["added rubygems evil any in gems.rb"],
    );
    check(
        "gems.locked",
        "",
        "GEM\n  specs:\n    evil (1.0)\n",
        &["added rubygems evil 1.0 in gems.locked"],
    );
    check(
        "go.work.sum",
        "",
        "e.example.com/a v1 h1:x=\n",
        &["added go e.example.com/a v1 in go.work.sum"],
    );
}

/// SEC-5: a file of the largest size is read, a longer one is never taken for "nothing new".
#[test]
fn a_file_that_is_too_long_is_listed() {
    const LARGEST: usize = 32 * 1024 * 1024;
    let of = |length: usize| {
        let name = "left-pad\n#";
        let after = format!("{name}{}", "x".repeat(length - name.len()));
        compare(&[ChangedFile {
            path: "requirements.txt",
            before: b"",
            after: after.as_bytes(),
        }])
    };
    assert_eq!(
        of(LARGEST).render(),
        "added pypi left-pad any in requirements.txt\n"
    );
    assert_eq!(
        of(LARGEST + 1).render(),
        format!("unread requirements.txt: it is longer than {LARGEST} bytes\n")
    );
}

/// SEC-5, BEY-1: the approval is bound to the list; a version or a name more is another list.
#[test]
fn the_digest_follows_the_list() {
    let of = |after: &str| {
        compare(&[ChangedFile {
            path: "Cargo.toml",
            before: b"[dependencies]\na = \"1\"\n",
            after: after.as_bytes(),
        }])
    };
    let one = of("[dependencies]\na = \"1\"\nb = \"1\"\n");
    assert_eq!(
        one.digest(),
        of("[dependencies]\nb = \"1\"\n\na = \"1\"\n").digest()
    );
    assert_ne!(
        one.digest(),
        of("[dependencies]\na = \"1\"\nb = \"2\"\n").digest()
    );
    assert!(
        !of("[dependencies]\na = \"2\"\n").needs_approval(),
        "a changed version is reviewed, not approved"
    );
    let forged = of("[dependencies]\na = \"1\"\n\"b\\nadded cargo c 1 in Cargo.toml\" = \"1\"\n");
    assert_eq!(forged.render().lines().count(), 1, "a name cannot forge a line");
}

/// Lists the versions of everything that a file adds.
fn added(path: &str, after: &str) -> Vec<String> {
    let change = compare(&[ChangedFile {
        path,
        before: b"",
        after: after.as_bytes(),
    }]);
    change.added.into_values().flatten().collect()
}

/// SEC-5: hostile: what comes from anywhere but the usual registry, or under another name, is told from a version.
#[test]
fn a_version_that_names_a_place_is_not_plain() {
    let npm = |version: &str| format!("{{\"dependencies\": {{\"a\": \"{version}\"}}}}");
    let cargo = |value: &str| format!("[dependencies]\na = {value}\n");
    let mut unusual: Vec<(&str, String)> = vec![
        (
            "Cargo.lock",
            "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = \"registry+https://a.example.com\"\n"
                .into(),
        ),
        ("Cargo.toml", "[patch.x]\na = \"1\"\n".into()),
        ("Cargo.toml", "[replace]\n\"a:1\" = \"2\"\n".into()),
        ("package.json", "{\"overrides\": {\"a\": {\"b\": \"1\"}}}".into()),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\"a @ https://evil.example.com/a.whl\"]\n".into(),
        ),
        (
            "pyproject.toml",
            "[tool.poetry.dependencies]\na = { git = \"https://evil.example.com/a\" }\n".into(),
        ),
        (
            "pyproject.toml",
            "[tool.uv.sources]\na = { path = \"1\" }\n".into(),
        ),
        ("go.mod", "module m\nreplace a => ../evil\n".into()),
        ("Gemfile", "gem 'a', git: 'https://evil.example.com/a'\n".into()),
        ("composer.json", "{\"require\": {\"a/b\": \"dev-main\"}}".into()),
    ];
    for value in [
        "{ git = \"https://evil.example.com/a\" }",
        "{ version = \"1\", git = \"1\" }",
        "{ path = \"1\" }",
        "{ version = \"1\", path = \"../a\" }",
        "{ version = \"1\", registry = \"2\" }",
        "{ version = \"1\", registry-index = \"3\" }",
    ] {
        unusual.push(("Cargo.toml", cargo(value)));
    }
    for version in [
        "npm:evil@1.0.0",
        "git+https://evil.example.com/a.git",
        "git+ssh://git@evil.example.com/a.git#semver:^1",
        "file:../a",
        "link:../a",
        "workspace:*",
        "https://evil.example.com/a.tgz",
        "evil/a",
        "github:evil/a",
        "1.0.0.tgz",
        "1/a",
        "../a",
        "~/a",
        "evil",
        "",
        "^",
        "1 evil",
        "1\u{a0}",
    ] {
        unusual.push(("package.json", npm(version)));
    }
    for line in [
        "a @ https://evil.example.com/a.whl",
        "a@git+https://evil.example.com/a",
        "-e git+https://evil.example.com/a#egg=a",
        "-e .",
        "./a.whl",
        "https://evil.example.com/a.whl",
        "--index-url https://evil.example.com",
        "-r 1.txt",
    ] {
        unusual.push(("requirements.txt", line.to_owned()));
    }
    for (path, text) in unusual {
        let versions = added(path, &text);
        assert!(!versions.is_empty(), "{path}: {text}");
        assert!(
            !versions.iter().any(|version| is_plain(version)),
            "{text}: {versions:?}"
        );
    }
    let mut plain: Vec<(&str, String)> = vec![
        (
            "Cargo.toml",
            cargo("{ version = \"1\", package = \"b\", features = [\"x\"] }"),
        ),
        ("Cargo.toml", cargo("{ workspace = true }")),
        ("Cargo.toml", cargo("\">=1.2, <2\"")),
        (
            "requirements.txt",
            "a\nb==1.0\nc[x]~=4.1,!=4.2 ; python_version < '3'\nd>=1!2.0.post1\n".into(),
        ),
        (
            "go.mod",
            "module m\nrequire a v0.0.0-20200101000000-abcdef123456\nrequire b v2.0.0+incompatible\n".into(),
        ),
        ("Gemfile", "gem 'a'\ngem 'b', '~> 7.0', '>= 7.0.1'\n".into()),
        (
            "composer.json",
            "{\"require\": {\"a/b\": \"^7.0|^8.0\", \"c/d\": \"1.*\"}}".into(),
        ),
    ];
    for version in [
        "^1.2.3",
        "1.x",
        "*",
        "latest",
        ">=1 <2",
        "1 || 2",
        "1.0.0 - 2.0.0",
        "1.0.0-beta.1",
        "> 1",
    ] {
        plain.push(("package.json", npm(version)));
    }
    for (path, text) in plain {
        let versions = added(path, &text);
        assert!(!versions.is_empty(), "{path}: {text}");
        assert!(
            versions.iter().all(|version| is_plain(version)),
            "{text}: {versions:?}"
        );
    }
}

/// SEC-5: hostile: what pip installs is listed, wherever a comment or a line seems to end.
#[test]
fn requirements_are_read_as_pip_reads_them() {
    let listed = |text: &str| {
        let changed = [ChangedFile {
            path: "requirements.txt",
            before: b"",
            after: text.as_bytes(),
        }];
        compare(&changed).render()
    };
    for text in [
        "# pinned \\\nevil==6\n",
        "  # pinned \\\nevil==6\n",
        "a==1 \\\n# pinned \\\nevil==6\n",
        "# words\revil==6\n",
        "# words\u{b}evil==6\n",
        "# words\u{c}evil==6\n",
        "# words\u{1c}evil==6\n",
        "# words\u{1d}evil==6\n",
        "# words\u{1e}evil==6\n",
        "# words\u{85}evil==6\n",
        "# words\u{2028}evil==6\n",
        "# words\u{2029}evil==6\n",
        "ev\\\nil==6\t# words",
        "ev\\\r\nil==6 # words \\\n",
        "evil==6\\",
        "evil [x, y] ==6\n",
    ] {
        let list = listed(text);
        assert!(
            list.contains("added pypi evil ==6 in requirements.txt\n"),
            "{text:?}: {list}"
        );
    }
    assert_eq!(
        listed("a==1 \\\n  # none\n"),
        "added pypi a ==1 in requirements.txt\n"
    );
    assert_eq!(listed("#evil==6\n \t# evil==6"), "");
    // What a URL holds is not what follows the extras.
    let address = "allowed @ https://evil.example/a.tar.gz?]==1.0";
    assert_eq!(
        listed(address),
        format!("added pypi {address} in requirements.txt\n")
    );
    // A `#` within a word begins nothing.
    assert_eq!(
        listed("a @ https://b/c#d"),
        "added pypi a @ https://b/c#d in requirements.txt\n"
    );
}

/// SEC-5: hostile: pip reads a file in the encoding that its first two lines name, and in another one a comment can hold lines.
#[test]
fn requirements_in_another_encoding_are_not_read() {
    let listed = |text: &str| {
        let changed = [ChangedFile {
            path: "requirements.txt",
            before: b"",
            after: text.as_bytes(),
        }];
        compare(&changed).render()
    };
    for text in [
        "# -*- coding: utf-7 -*-\n# +AAo-evil-package==6.6.6\na==1\n",
        "# words\n# vim: set fileencoding=latin-1 :\na==1\n",
        "#coding=utf_16\r\na==1\n",
        "# coding: utf-8-sig\na==1\n",
        "# coding, coding:\tcp037\na==1\n",
    ] {
        let list = listed(text);
        assert!(
            list.starts_with("unread requirements.txt: it names an encoding"),
            "{text:?}: {list}"
        );
    }
    for text in [
        "# -*- coding: utf-8 -*-\na==1\n",
        "# coding=UTF_8\na==1\n",
        "# coding: utf8\na==1\n",
        "# coding: ascii\na==1\n",
        "# coding: us-ascii\na==1\n",
        "# the coding : of this\n# coding utf-7\n# coding: utf-7\na==1\n",
        " # coding: utf-7\na==1\n",
        "a==1\n# coding:\n",
    ] {
        assert_eq!(listed(text), "added pypi a ==1 in requirements.txt\n", "{text:?}");
    }
}

/// SEC-5: hostile: YAML has many ways to write a map, and those that pnpm does not write itself are not read as "nothing new".
#[test]
fn a_pnpm_lock_of_another_shape_is_not_read() {
    let listed = |text: &str| {
        let changed = [ChangedFile {
            path: "pnpm-lock.yaml",
            before: b"",
            after: text.as_bytes(),
        }];
        compare(&changed).render()
    };
    for text in [
        "packages: {evil@6.6.6: {resolution: {integrity: x}}}\n",
        "packages: &a\n  evil@6.6.6:\n",
        "packages:\n    evil@6.6.6:\n        resolution: {integrity: x}\n",
        "packages:\n evil@6.6.6:\n  resolution: {integrity: x}\n",
        "packages:\n  ? evil@6.6.6\n  : resolution: {integrity: x}\n",
        "packages:\n  {evil@6.6.6: {resolution: {integrity: x}}}\n",
        "packages:\n  &a evil@6.6.6:\n",
        "packages:\n\tevil@6.6.6:\n",
        "snapshots: {evil@6.6.6: {}}\n",
        "snapshots:\n    evil@6.6.6: {}\n",
        "\"packages\":\n  evil@6.6.6:\n",
        "packages :\n  evil@6.6.6:\n",
        "{packages: {evil@6.6.6: {}}}\n",
        "  packages:\n    evil@6.6.6:\n",
        "lockfileVersion: '9.0'\n---\n  packages:\n    evil@6.6.6:\n",
        "lockfileVersion: '9.0'\rpackages:\r  evil@6.6.6:\r",
    ] {
        let list = listed(text);
        assert!(list.starts_with("unread pnpm-lock.yaml: "), "{text:?}: {list}");
    }
    assert_eq!(
        listed("packages: {}\n\n\nsnapshots: {}\n# words\nimporters: {.: {}}\n"),
        ""
    );
    assert_eq!(
        listed(
            "---\r\nlockfileVersion: '9.0'\r\n\r\nimporters:\r\n    .: {}\r\npackages:\r\n\r\n  # words\r\n  a@1.0.0:\r\n    \
             resolution: {}\r\n  \r\nsnapshots:\r\n\r\n  a@1.0.0: {}\r\n"
        ),
        "added npm a 1.0.0 in pnpm-lock.yaml\n"
    );
}

/// SEC-5: hostile: what marks a package as the project's own, or as none, leaves out none that comes from elsewhere.
#[test]
fn no_marker_leaves_a_foreign_package_out() {
    let python =
        |source: &str| format!("[[package]]\nname = \"evil\"\nversion = \"1.0\"\nsource = {{ {source} }}\n");
    for own in ["editable = \".\"", "virtual = \".\""] {
        check("uv.lock", "", &python(own), &[]);
        for (path, place, shown) in [
            (
                "uv.lock",
                "registry = \"https://evil.example/simple\"",
                "registry https://evil.example/simple",
            ),
            (
                "uv.lock",
                "git = \"https://evil.example/e\"",
                "git https://evil.example/e",
            ),
            (
                "uv.lock",
                "url = \"https://evil.example/e.whl\"",
                "url https://evil.example/e.whl",
            ),
            ("uv.lock", "path = \"../e.whl\"", "path ../e.whl"),
            ("uv.lock", "directory = \"../e\"", "directory ../e"),
            (
                "poetry.lock",
                "url = \"https://evil.example/e.whl\"",
                "url https://evil.example/e.whl",
            ),
        ] {
            let (key, place_of_own) = own.split_once(" = ").expect("a pair");
            let mut words = [
                format!("{key} {}", place_of_own.trim_matches('"')),
                shown.to_owned(),
            ];
            words.sort();
            let expected = format!("added pypi evil 1.0 from {} in {path}", words.join(" "));
            check(path, "", &python(&format!("{place}, {own}")), &[&expected]);
        }
        for path in ["poetry.lock", "pdm.lock"] {
            let shown = own.replace(['"', '='], "").replace("  ", " ");
            check(
                path,
                "",
                &python(own),
                &[&format!("added pypi evil 1.0 from {shown} in {path}")],
            );
        }
    }
    check(
        "uv.lock",
        "",
        "[[package]]\nname = \"evil\"\nsource = { directory = \"../e\" }\n",
        &["added pypi evil any from directory ../e in uv.lock"],
    );
    check(
        "uv.lock",
        "",
        "[[package]]\nname = \"evil\"\nsource = \"editable\"\n",
        &["added pypi evil any from editable in uv.lock"],
    );
    // uv takes packages by their earlier name, too.
    check(
        "uv.lock",
        "",
        "[[distribution]]\nname = \"evil\"\nversion = \"1\"\nsource = { registry = \"x\" }\n",
        &["added pypi evil 1 from registry x in uv.lock"],
    );
    check(
        "Pipfile.lock",
        "",
        r#"{"_meta": {}, "tests": {"evil": {"version": "==1", "hg": "https://evil.example/e"}}}"#,
        &["added pypi evil ==1 from hg https://evil.example/e in Pipfile.lock"],
    );
    check(
        "package-lock.json",
        "",
        r#"{"packages": {"node_modules/evil": {"version": "1", "resolved": "https://evil.example/e.tgz", "link": true}}}"#,
        &["added npm evil 1 from https://evil.example/e.tgz in package-lock.json"],
    );
    check(
        "Gemfile.lock",
        "GEM\n  remote: https://gems.example.org/\n  specs:\n    rake (13.0.6)\n",
        "GEM\n  remote: https://evil.example/\n  remote: https://gems.example.org/\n  specs:\n    rake (13.0.6)\n",
        &[
            "changed rubygems rake 13.0.6 to 13.0.6 from https://evil.example/ https://gems.example.org/ in Gemfile.lock",
        ],
    );
    let composer = |more: &str| {
        format!(
            r#"{{"packages": [{{"name": "a/b", "version": "1", "dist": {{"type": "path", "url": "https://ok.example/a"{more}}}}}]}}"#
        )
    };
    check(
        "composer.lock",
        &composer(""),
        &composer(r#", "mirrors": [{"url": "https://evil.example/%package%", "preferred": true}]"#),
        &[
            "changed composer a/b 1 to 1 from https://ok.example/a from https://evil.example/%package% in composer.lock",
        ],
    );
}

/// SEC-5: hostile: every part of the head of a block names a package, and what is no head hides none.
#[test]
fn a_yarn_lock_of_another_shape_is_not_read() {
    let block = "\n  version: 6.6.6\n  resolution: \"evil@npm:6.6.6\"\n";
    for head in [
        "\"evil@npm:^6\":",
        "\"@a/b@npm:^6, evil@npm:^6\":",
        "\"evil@npm:^6\", \"evil@npm:^6.1\":",
        "\"evil@npm:^6\" :",
        "? \"evil@npm:^6, evil@npm:^6.1\"\n:",
    ] {
        let lock = format!("# words @ here\n__metadata:\n  version: 8\n\n{head}{block}");
        let change = compare(&[ChangedFile {
            path: "yarn.lock",
            before: b"",
            after: lock.as_bytes(),
        }]);
        let rendered = change.render();
        assert!(
            rendered.contains("added npm evil 6.6.6 in yarn.lock\n"),
            "{head}: {rendered}"
        );
        assert!(!rendered.contains("unread"), "{head}: {rendered}");
    }
    for head in [
        "\"__metadata, evil@npm:^6\":",
        "\"__metadata\":",
        "\"evil, evil@npm:^6\":",
        "\"evil@npm:^6, evil\":",
        "evil:",
        "\"evil@npm:^6\": ",
        "\"evil@npm:^6\": # words",
        "\"evil@npm:^6\": &a",
        "\"evil@npm:^6\": {version: 6.6.6}",
        "---\n\"evil@npm:^6\":",
        "\"evil@npm:^6\":\n:",
        "? \"evil@npm:^6\"\n: version: 6.6.6",
        "<<<<<<< ours\n\"evil@npm:^6\":",
        "\"e\\x76il@npm:^6\":",
        "&a evil@npm:^6:",
    ] {
        let lock = format!("__metadata:\n  version: 8\n\n{head}{block}");
        let change = compare(&[ChangedFile {
            path: "yarn.lock",
            before: b"",
            after: lock.as_bytes(),
        }]);
        assert_eq!(change.unread.len(), 1, "{head}: {}", change.render());
    }
    check(
        "yarn.lock",
        "",
        "# words @ here\n__metadata:\n  version: 8\n",
        &[],
    );
}

/// SEC-5: hostile: what a package in a `pnpm-lock.yaml` is does not rest with its key alone.
#[test]
fn what_stands_below_the_key_of_a_package_is_read() {
    let lock = |fields: &str| {
        format!(
            "packages:\n  a@1.0.0:\n{fields}    engines: {{node: '*'}}\nsnapshots:\n  a@1.0.0:\n    dependencies:\n      path: 1.0.0\n"
        )
    };
    let usual = lock("    resolution: {integrity: x}\n");
    let git = "{type: git, repo: https://evil.example/a.git, commit: abc}";
    for (fields, shown) in [
        (
            format!("    resolution: {git}\n"),
            "repo https://evil.example/a.git commit abc",
        ),
        (
            format!("    'resolution': {git}\n"),
            "repo https://evil.example/a.git commit abc",
        ),
        (
            "    resolution: {directory: ../evil, type: directory}\n".into(),
            "directory ../evil",
        ),
        (
            "    resolution: {integrity: x}\n    version: 6.6.6\n".into(),
            "version 6.6.6",
        ),
        (
            "    resolution: {integrity: x}\n    name: evil\n".into(),
            "name evil",
        ),
        (
            "    resolution:\n      integrity: x\n      \"tarball\": https://evil.example/a.tgz\n".into(),
            "https://evil.example/a.tgz",
        ),
    ] {
        let expected = format!("changed npm a 1.0.0 to 1.0.0, 1.0.0 from {shown} in pnpm-lock.yaml");
        check("pnpm-lock.yaml", &usual, &lock(&fields), &[&expected]);
    }
    check(
        "pnpm-lock.yaml",
        "",
        &usual,
        &["added npm a 1.0.0 in pnpm-lock.yaml"],
    );
    check(
        "pnpm-lock.yaml",
        &usual,
        &(usual.clone() + "  evil@6.6.6:\n    resolution: {integrity: x}\n"),
        &["added npm evil 6.6.6 in pnpm-lock.yaml"],
    );
    for fields in [
        "    resolution: *evil\n",
        "    resolution: &evil {integrity: x}\n",
        "    resolution: {integrity: x, tarball: *evil}\n",
        "    resolution: {integrity: x, \"tarb\\x61ll\": https://evil.example}\n",
        "    \"re\\x73olution\": {integrity: x}\n",
        "    <<: *evil\n",
        "    ? resolution\n    : {integrity: x}\n",
        "    resolution:\n      ? tarball\n      : https://evil.example\n",
        "    version: *evil\n",
        "    deprecated: \"\n    resolution: {integrity: x}\n",
        "    deprecated: \"a\\\"\n",
        "    a\": \"\n",
        "    engines: {node: 1,\n",
        "    cpu: [x64,\n",
        "    engines: {node: '}\n",
        "      resolution: {integrity: x}\n",
    ] {
        let change = compare(&[ChangedFile {
            path: "pnpm-lock.yaml",
            before: b"",
            after: lock(fields).as_bytes(),
        }]);
        assert_eq!(change.unread.len(), 1, "{fields}: {}", change.render());
    }
}

/// SEC-5: what pnpm puts in the place of a dependency is one, and is told from what else it is set up by.
#[test]
fn overrides_of_pnpm_are_dependencies() {
    let manifest = |pnpm: &str| format!("{{\"name\": \"a\"{pnpm}}}");
    let (none, some) = (
        manifest(""),
        manifest(r#", "pnpm": {"overrides": {"b": "npm:evil@6"}}"#),
    );
    check(
        "package.json",
        &none,
        &some,
        &[
            "added npm b npm:evil@6 in package.json",
            "added npm evil 6 as b in package.json",
        ],
    );
    let only = |before: &str, after: &str| {
        only_dependencies_changed("package.json", before.as_bytes(), after.as_bytes())
    };
    assert!(only(&none, &some));
    for beside in [
        r#", "pnpm": {"onlyBuiltDependencies": ["b"]}"#,
        r#", "pnpm": {"overrides": {"b": "1"}, "onlyBuiltDependencies": ["b"]}"#,
        r#", "pnpm": {"overrides": ["b"]}"#,
    ] {
        assert!(!only(&none, &manifest(beside)), "{beside}");
    }
}

/// SEC-5: hostile: a package under another name is judged by its own.
#[test]
fn an_alias_is_what_it_stands_for() {
    let added = |wanted: &str| {
        let manifest = format!(r#"{{ "dependencies": {{ "x": "{wanted}" }} }}"#);
        let changed = [ChangedFile {
            path: "package.json",
            before: b"",
            after: manifest.as_bytes(),
        }];
        compare(&changed).render()
    };
    for (wanted, real) in [
        ("npm:left-pad@1", "left-pad 1 as x"),
        ("npm:left-pad", "left-pad any as x"),
        ("npm:@evil/a@^2", "@evil/a ^2 as x"),
        ("npm:@evil/a", "@evil/a any as x"),
    ] {
        let expected = format!("added npm {real} in package.json\nadded npm x {wanted} in package.json\n");
        assert_eq!(added(wanted), expected);
    }
    for wanted in ["npm:^1.2", "1", "latest"] {
        assert_eq!(added(wanted), format!("added npm x {wanted} in package.json\n"));
    }
}

/// SEC-5: hostile: what stands beside the dependencies of a manifest is told from them.
#[test]
fn a_manifest_that_changes_beside_its_dependencies_is_known() {
    let only = |path: &str, before: &str, after: &str| {
        only_dependencies_changed(path, before.as_bytes(), after.as_bytes())
    };
    let cargo = "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n";
    for more in [
        "c = \"1\"\n",
        "[dev-dependencies]\nc = \"1\"\n",
        "[target.'cfg(unix)'.build-dependencies]\nc = \"1\"\n",
        "[patch.x]\nb = { path = \"b\" }\n",
        "# words\n",
    ] {
        assert!(only("x/Cargo.toml", cargo, &format!("{cargo}{more}")), "{more}");
    }
    for more in [
        "[[test]]\nname = \"t\"\nharness = false\n",
        "[lib]\ntest = false\n",
        "[features]\nx = []\n",
        "[profile.test]\ndebug-assertions = false\n",
        "[workspace.dependencies]\nc = \"1\"\n",
        "[target.x]\nrunner = \"evil\"\n",
        "[package.metadata.x]\ndependencies = \"1\"\n",
        "not toml [",
    ] {
        assert!(!only("Cargo.toml", cargo, &format!("{cargo}{more}")), "{more}");
    }
    let composer = r#"{ "name": "a/b", "require": { "c/d": "1" } }"#;
    let more = r#"{ "name": "a/b", "require": { "c/d": "2" }, "require-dev": { "e/f": "1" } }"#;
    assert!(only("composer.json", composer, more));
    let scripts = r#"{ "name": "a/b", "require": { "c/d": "1" }, "scripts": { "test": "true" } }"#;
    assert!(!only("composer.json", composer, scripts));
    let workspace = "[workspace]\nmembers = []\n[workspace.dependencies]\na = \"1\"\n";
    assert!(only(
        "Cargo.toml",
        workspace,
        &workspace.replace("\"1\"", "\"2\"")
    ));
    assert!(!only(
        "Cargo.toml",
        workspace,
        &workspace.replace("[]", "[\"a\"]")
    ));
    assert!(!only("Cargo.toml", "", cargo) && !only("Cargo.toml", cargo, ""));

    let npm = r#"{"name": "a", "scripts": {"test": "jest"}, "dependencies": {"b": "1"}}"#;
    assert!(only(
        "package.json",
        npm,
        &npm.replace("\"b\": \"1\"", "\"b\": \"2\", \"c\": \"1\"")
    ));
    assert!(only(
        "package.json",
        npm,
        &npm.replace("\"name\"", "\"overrides\": {\"b\": \"2\"}, \"name\"")
    ));
    for (from, to) in [
        ("jest", "true"),
        ("\"name\"", "\"main\": \"evil.js\", \"name\""),
        ("{\"b\": \"1\"}", "[\"b\"]"),
        ("}}", "}"),
    ] {
        assert!(!only("package.json", npm, &npm.replace(from, to)), "{to}");
    }
    assert!(!only("package.json", "", npm));
    assert!(!only("package.json", "[]", "[1]"));

    let python =
        "[project]\nname = \"a\"\ndependencies = [\"b\"]\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
    for more in [
        "[dependency-groups]\ntest = [\"c\"]\n",
        "[tool.uv]\ndev-dependencies = [\"c\"]\n",
        "[tool.hatch.envs.x]\ndependencies = [\"c\"]\n",
        "[tool.poetry.group.x.dependencies]\nc = \"1\"\n",
        "[build-system]\nrequires = [\"c\"]\n",
    ] {
        assert!(
            only("pyproject.toml", python, &format!("{python}{more}")),
            "{more}"
        );
    }
    for more in [
        "[tool.x]\na = 1\n",
        "[build-system]\nbuild-backend = \"evil\"\n",
        "[project.scripts]\npytest = \"evil:main\"\n",
        "[tool.hatch.envs.x.scripts]\nrun = \"true\"\n",
        "[tool.poetry.dependencies]\npython = \"^3\"\n",
        "[",
    ] {
        assert!(
            !only("pyproject.toml", python, &format!("{python}{more}")),
            "{more}"
        );
    }

    let lock = "[[package]]\nname = \"a\"\nversion = \"1\"\n";
    assert!(only("Cargo.lock", "", lock) && only("a/uv.lock", lock, ""));
    assert!(only("dev-requirements.txt", "a\n", "b\n") && only("go.sum", "", "a v1 h1:x=\n"));
    assert!(!only("Cargo.lock", lock, "version = 4") && !only("go.sum", "", "a"));
    for (path, after) in [
        ("setup.py", "x"),
        ("go.mod", "module m\n"),
        ("Gemfile", "gem 'a'\n"),
        ("src/lib.rs", "x"),
    ] {
        assert!(!only(path, "", after), "{path}");
    }
    assert!(!only_dependencies_changed("requirements.txt", b"", &[0xff]));
}
