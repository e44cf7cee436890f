//! What is objected to in a change, hostile changes first.

use conductor_domain::diff::{FindingKind, Severity};
use conductor_domain::role::Role;
use conductor_policy::authority::{Authority, Request, Ruling};
use conductor_policy::hidden::visible;
use conductor_policy::inspect::pattern::{InvalidPattern, Pattern};
use conductor_policy::inspect::{Change, Inspector, Limits, Objection, Side, Subject, Unshown, harness_of};
use conductor_policy::secret::live::LiveSecrets;

use Severity::{NeedsApproval, Violation};

const LIVE: &str = "live-secret-of-this-instance";

fn inspector() -> Inspector {
    let pattern = Pattern::new("no-console", r"console\.log\(", NeedsApproval, "web/").expect("valid");
    Inspector::new(Limits::default(), vec![pattern], LiveSecrets::new([LIVE]))
}

fn token() -> String {
    ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat()
}

/// Inspects one file that the plan names.
fn of(path: &str, before: &str, after: &str) -> Vec<(usize, Subject, Severity)> {
    whole(path, before, after)
        .into_iter()
        .map(|objection| (objection.line, objection.subject, objection.severity))
        .collect()
}

fn whole(path: &str, before: &str, after: &str) -> Vec<Objection> {
    let side = |text: &'static str| {
        if text.is_empty() {
            Side::Absent
        } else {
            Side::File(text.as_bytes())
        }
    };
    let (before, after): (&'static str, &'static str) = (before.to_owned().leak(), after.to_owned().leak());
    let change = Change {
        path,
        before: side(before),
        after: side(after),
        marks: &[],
    };
    inspector().inspect(&[change], &[path.to_owned()])
}

/// SEC-4: a secret in an added line stops the run; one that stood there before is not this change's.
#[test]
fn secrets_in_added_lines_are_found_and_never_shown() {
    let line = format!("token = \"{}\"\n", token());
    assert_eq!(of("a.py", "", &line), [(1, Subject::Secret, Violation)]);
    assert_eq!(
        of("a.py", "x\n", &format!("x\ny\n{line}")),
        [(3, Subject::Secret, Violation)]
    );
    assert_eq!(of("a.py", &line, &format!("{line}z\n")), []);
    assert_eq!(of("a.py", &line, ""), []);
    assert_eq!(
        of("a.py", "", "db_password = 'k3Qz9!xW7mPv'\n"),
        [(1, Subject::Secret, NeedsApproval)]
    );
    assert_eq!(
        of("a.bin", "", &format!("\0\0{}", token())),
        [(1, Subject::Secret, Violation)]
    );
    assert_eq!(
        of("a.txt", "", &format!("x {LIVE}")),
        [(1, Subject::Secret, Violation)]
    );
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n";
    assert_eq!(of("k.pem", "", key), [(1, Subject::Secret, Violation)]);
    let console = format!("console.log('{}')\n", token());
    let shown = format!("{:?}", whole("web/a.js", "", &console));
    assert!(
        shown.contains("console.log('[redacted]')") && !shown.contains(&token()),
        "{shown}"
    );
}

/// SEC-4, S-47: a name leaves with its file, empty or not; one that stood there before, or goes, is not this change's.
#[test]
fn a_secret_in_a_new_path_is_found() {
    let path = format!("notes/{}.txt", token());
    let found = whole(&path, "", "x\n");
    assert_eq!(
        found,
        [Objection {
            path: path.clone(),
            line: 0,
            subject: Subject::Secret,
            severity: Violation,
            evidence: "in the path: github-token".to_owned(),
        }]
    );
    assert_eq!(
        of("a/password=k3Qz9!xW7mPv/b.txt", "", "x\n"),
        [(0, Subject::Secret, NeedsApproval)]
    );
    assert_eq!(of("a/password=correcthorse", "", "x\n"), []);
    assert_eq!(of(&path, "x\n", "y\n"), []);
    assert_eq!(of(&path, "x\n", ""), []);
    let link = Change {
        path: &path,
        before: Side::Absent,
        after: Side::Link,
        marks: &[],
    };
    let found = inspector().inspect(&[link], std::slice::from_ref(&path));
    assert_eq!(found[0].subject, Subject::Secret);
}

/// SEC-4, S-19, S-49, S-51.
#[test]
fn paths_are_judged_by_what_they_decide() {
    let forbidden = (0, Subject::Tree(FindingKind::ForbiddenPath), Violation);
    let harness = (0, Subject::Harness, NeedsApproval);
    for (path, expected) in [
        (".github/workflows/ci.yml", vec![forbidden.clone()]),
        (".GitHub/Workflows/deep/ci.yml", vec![forbidden.clone()]),
        (".github/workflows", vec![forbidden.clone()]),
        (".github/workflows-guide.md", vec![]),
        ("CODEOWNERS", vec![forbidden.clone()]),
        ("src/codeowners", vec![]),
        (".github/settings.yml", vec![forbidden.clone()]),
        (".github/settings.yaml", vec![forbidden.clone()]),
        (".github/dependabot.yaml", vec![forbidden]),
        (".env", vec![(0, Subject::EnvironmentFile, NeedsApproval)]),
        (
            "app/.env.production",
            vec![(0, Subject::EnvironmentFile, NeedsApproval)],
        ),
        (".env.example", vec![]),
        ("crates/a/build.rs", vec![harness.clone()]),
        (".cargo/config.toml", vec![harness.clone()]),
        ("tests/conftest.py", vec![harness.clone()]),
        ("Makefile", vec![harness.clone()]),
        ("jest.config.ts", vec![harness.clone()]),
        ("a/.cargo/config", vec![harness.clone()]),
        (".cargo", vec![harness]),
        ("cargo/config.toml", vec![]),
        (".envrc", vec![]),
        ("app.env", vec![]),
        (".env.dist", vec![]),
        ("src/main.rs", vec![]),
        (
            "src/p\u{430}yment.rs",
            vec![(0, Subject::MixedScripts, NeedsApproval)],
        ),
        ("src/платёж.rs", vec![]),
        ("src/платёж-a.rs", vec![]),
        ("src/a\u{202e}b.rs", vec![(0, Subject::HiddenText, NeedsApproval)]),
    ] {
        assert_eq!(of(path, "", "x\n"), expected, "{path}");
    }
    let manifest =
        |scripts: &str, version: &str| format!("{{\"version\": \"{version}\", \"scripts\": {scripts}}}");
    let (old, new) = (
        manifest("{\"test\": \"jest\"}", "1"),
        manifest("{\"test\": \"jest\"}", "2"),
    );
    assert_eq!(of("package.json", &old, &new), []);
    assert_eq!(
        of("package.json", "", "{\"version\": \"1\"}"),
        [(0, Subject::Harness, NeedsApproval)]
    );
    assert_eq!(
        of("package.json", &old, ""),
        [(0, Subject::Harness, NeedsApproval)]
    );
    let forged = manifest("{\"test\": \"true\"}", "1");
    assert_eq!(
        of("package.json", &old, &forged),
        [(0, Subject::Harness, NeedsApproval)]
    );
    assert_eq!(
        of("package.json", &old, "{not json"),
        [(0, Subject::Harness, NeedsApproval)]
    );
}

/// S-49: hostile: a path that is Latin but for letters that look so; a language's own words are left alone.
#[test]
fn a_path_that_can_be_taken_for_another_is_marked() {
    for path in [
        "src/\u{441}\u{43e}\u{440}\u{435}/mod.rs",
        "src/\u{3bf}\u{3c1}/mod.rs",
        "src/\u{585}\u{57d}.rs",
        "src/\u{ff4d}\u{ff4f}\u{ff44}.rs",
        "src/v\u{ff11}.rs",
        "src/\u{1d426}\u{1d428}\u{1d41d}.rs",
        "r\u{e9}sum\u{e9}/\u{441}\u{43e}.md",
    ] {
        assert_eq!(
            of(path, "", "x\n"),
            [(0, Subject::MixedScripts, NeedsApproval)],
            "{path}"
        );
    }
    for path in [
        "docs/r\u{e9}sum\u{e9}.md",
        "docs/платёж/\u{441}\u{43e}\u{440}\u{435}.md",
        "docs/\u{ff21}\u{ff30}\u{ff29}仕様.md",
        "docs/仕様.md",
        "\u{441}\u{43e}\u{440}\u{435}",
        "docs/a – b (1).md",
    ] {
        assert_eq!(of(path, "", "x\n"), [], "{path}");
    }
}

/// S-11, S-51: what git's look at the trees marked is passed on, and files outside the plan ask again.
#[test]
fn marks_and_the_plan_are_kept_to() {
    let change = |path, marks| Change {
        path,
        before: Side::Absent,
        after: Side::Link,
        marks,
    };
    let changes = [
        change("vendor/x", &[FindingKind::Gitlink][..]),
        change("link", &[FindingKind::EscapingSymlink]),
        change("docs/a.md", &[]),
        change("docsx", &[]),
    ];
    let plan = ["vendor/x".to_owned(), "docs/".to_owned()];
    let found: Vec<(String, Subject)> = inspector()
        .inspect(&changes, &plan)
        .into_iter()
        .map(|objection| (objection.path, objection.subject))
        .collect();
    assert_eq!(
        found,
        [
            ("docsx".to_owned(), Subject::Tree(FindingKind::OutsidePlan)),
            ("link".to_owned(), Subject::Tree(FindingKind::OutsidePlan)),
            ("link".to_owned(), Subject::Tree(FindingKind::EscapingSymlink)),
            ("vendor/x".to_owned(), Subject::Tree(FindingKind::Gitlink)),
        ]
    );
}

/// SEC-4, S-49: sizes, lines and numbers have limits; what cannot be read is not passed over.
#[test]
fn what_is_too_large_to_judge_is_said() {
    assert_eq!(
        of("a.txt", "", &"line\n".repeat(300_000)),
        [(0, Subject::LargeFile, NeedsApproval)]
    );
    assert_eq!(
        of("a.bin", "", &"\0".repeat(300_000)),
        [(0, Subject::LargeBinary, NeedsApproval)]
    );
    assert_eq!(of("a.bin", "", &"\0".repeat(200_000)), []);
    assert_eq!(
        of("a.js", "", &"x".repeat(20_000)),
        [(1, Subject::LongLine, NeedsApproval)]
    );
    let unread = Change {
        path: "huge",
        before: Side::Absent,
        after: Side::Unread { size: 5 },
        marks: &[],
    };
    let found = inspector().inspect(&[unread; 101], &["huge".to_owned()]);
    let subjects: Vec<&Subject> = found.iter().map(|objection| &objection.subject).collect();
    assert_eq!(subjects, [&Subject::ManyFiles, &Subject::LargeFile]);
}

/// SEC-4, S-49: the limit itself is within it, the next byte, line or file is not.
#[test]
fn limits_hold_to_the_byte() {
    let limits = Limits {
        file: 100,
        binary: 50,
        files: 2,
        line: 40,
    };
    let inspector = Inspector::new(limits, vec![], LiveSecrets::new([]));
    let judge = |after: &[u8], files: usize| -> Vec<(usize, Subject)> {
        let change = Change {
            path: "a",
            before: Side::Absent,
            after: Side::File(after),
            marks: &[],
        };
        inspector
            .inspect(&vec![change; files], &["a".to_owned()])
            .into_iter()
            .map(|objection| (objection.line, objection.subject))
            .collect()
    };
    let lines = |last: usize| {
        [
            &b"x".repeat(40)[..],
            b"\n",
            &b"y".repeat(40),
            b"\n",
            &b"z".repeat(last),
        ]
        .concat()
    };
    assert_eq!(judge(&lines(18), 2), []);
    assert_eq!(judge(&lines(19), 1), [(0, Subject::LargeFile)]);
    assert_eq!(judge(b"x", 3), [(0, Subject::ManyFiles)]);
    assert_eq!(judge(&b"\0".repeat(50), 1), []);
    assert_eq!(judge(&b"\0".repeat(51), 1), [(0, Subject::LargeBinary)]);
    assert_eq!(judge(&b"x".repeat(41), 1), [(1, Subject::LongLine)]);
    assert_eq!(
        judge(&[&b"a\n"[..], &b"x".repeat(41), b"\n\n"].concat(), 1),
        [(2, Subject::LongLine)]
    );
}

/// SEC-4: a key of several lines is this change's if any of its lines is, and the first such line is named.
#[test]
fn a_secret_of_several_lines_is_told_at_its_first_added_line() {
    let key = |body: &str| format!("a\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nb\n");
    let (old, new) = (
        key("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"),
        key("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC8"),
    );
    assert_eq!(of("k.pem", &old, &new), [(3, Subject::Secret, Violation)]);
    assert_eq!(of("k.pem", &new, &new), []);
    let after = |line: &str| format!("{new}{line}\n");
    assert_eq!(of("k.pem", &new, &after("plain")), []);
}

/// SEC-4: evidence is cut visibly, and never in the middle of a secret.
#[test]
fn long_evidence_is_cut_visibly() {
    let shown = |length: usize| {
        let line = format!("console.log({})", "é".repeat(length - 13));
        whole("web/a.js", "", &line)[0].evidence.clone()
    };
    assert!(shown(160).ends_with("é)"), "{}", shown(160));
    assert_eq!(shown(161).chars().count(), 161);
    assert!(shown(161).ends_with("é…"), "{}", shown(161));
}

/// SEC-4, S-48: characters that are not seen, or that turn the text around.
#[test]
fn hidden_characters_are_found_and_shown_as_codes() {
    let found = whole("a.rs", "", "let a = 1; // \u{202e} evil\nok\nzero\u{200b}width\n");
    let seen: Vec<(usize, &str)> = found
        .iter()
        .map(|one| (one.line, one.evidence.as_str()))
        .collect();
    assert_eq!(
        seen,
        [(1, "let a = 1; // ⟨U+202E⟩ evil"), (3, "zero⟨U+200B⟩width")]
    );
    assert_eq!(of("a.txt", "", "windows\r\nline\tends ❤\u{fe0f} é 日本\r\n"), []);
    for hidden in [
        "\u{1b}[31m",
        "\u{2066}",
        "\u{e0041}",
        "\u{fe01}",
        "\u{e0100}",
        "\u{e000}",
        "\u{2028}",
        "\u{feff}",
        "\r",
        "\u{34f}",
        "\u{115f}",
        "\u{1160}",
        "\u{17b4}",
        "\u{17b5}",
        "\u{180b}",
        "\u{180c}",
        "\u{180d}",
        "\u{180f}",
        "\u{2800}",
        "\u{3164}",
        "\u{ffa0}",
        "\u{fff0}",
    ] {
        assert_eq!(visible(hidden).count, 1, "{hidden:?}");
        let path = format!("src/a{hidden}.rs");
        assert!(
            of(&path, "", "x\n").contains(&(0, Subject::HiddenText, NeedsApproval)),
            "{hidden:?}"
        );
        let line = format!("let a{hidden} = 1;\n");
        assert_eq!(
            of("a.rs", "", &line),
            [(1, Subject::HiddenText, NeedsApproval)],
            "{hidden:?}"
        );
    }
    assert_eq!(visible("plain\n\ttext").text, "plain\n\ttext");
}

/// SEC-4, S-48: hostile: a byte of zero makes no file one that nobody looks at.
#[test]
fn a_zero_byte_hides_nothing() {
    let hidden = |line| (line, Subject::HiddenText, NeedsApproval);
    let pattern = |line| (line, Subject::Pattern("no-console".to_owned()), NeedsApproval);
    assert_eq!(of("web/logo", "", "\0\nconsole.log(1)\n"), [pattern(2)]);
    assert_eq!(
        of("web/a.js", "", "// \0\nconsole.log(1)\nlet a\u{202e} = 1;\n"),
        [hidden(0), pattern(2), hidden(3)]
    );
    // What was text is looked at as text, whatever its name.
    let long = "x".repeat(20_000);
    assert_eq!(
        of("web/run", "a\n", &format!("a\n\0zero\u{200b}width\n{long}\n")),
        [hidden(0), hidden(2), (3, Subject::LongLine, NeedsApproval)]
    );
    let told = &whole("src/a.rs", "", "fn a() {}\0\n")[0];
    assert_eq!(
        (told.line, told.evidence.as_str()),
        (
            0,
            "bytes of zero make it binary, so that a reader is shown none of its lines"
        )
    );
    for source in [
        "a.PY",
        "Makefile",
        "docs/a.md",
        "Cargo.lock",
        "a.yaml",
        "Dockerfile",
        ".npmrc",
    ] {
        assert!(of(source, "", "\0").contains(&hidden(0)), "{source}");
    }
    // What is binary by nature, and stays so, is not asked about for that.
    for binary in ["a.png", "a.wasm", "bun.lockb", "run"] {
        let objections = of(binary, "\0\u{200b}", "\0\u{200b}\n\0\u{200b}");
        assert!(!objections.contains(&hidden(0)), "{binary}: {objections:?}");
    }
    assert_eq!(of("web/picture.png", "", "\0\u{200b}"), []);
    // A zero far behind the beginning is a hidden character of its line.
    assert_eq!(
        of("a.rs", "", &format!("{}\0\n", "a\n".repeat(4001))),
        [hidden(4002)]
    );
}

/// SEC-4, S-48: hostile: what makes a symbol an emoji hides nothing in a name.
#[test]
fn the_emoji_selector_is_left_alone_after_a_symbol_only() {
    let hidden = |line| (line, Subject::HiddenText, NeedsApproval);
    for line in [
        "let is_admin\u{fe0f} = true;",
        "\u{fe0f}",
        "é\u{fe0f}",
        "日\u{fe0f}",
        "1\u{fe0f}",
        "-\u{fe0f}",
        "❤\u{fe0f}\u{fe0f}",
        "\u{3000}\u{fe0f}",
        "a\u{fe0f}\u{20e3}",
    ] {
        assert_eq!(of("a.rs", "", line), [hidden(1)], "{line:?}");
    }
    for line in [
        "❤\u{fe0f} fine",
        "⚠\u{fe0f}",
        "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
        "🛠\u{fe0f}",
    ] {
        assert_eq!(of("a.rs", "", line), [], "{line:?}");
        assert_eq!(visible(line).text, line);
    }
    for path in [
        "src/a\u{fe0f}.rs",
        "docs/❤\u{fe0f}.md",
        "docs/1\u{fe0f}\u{20e3}.md",
    ] {
        let found = whole(path, "", "x\n");
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.line, one.subject.clone(), one.severity))
            .collect();
        assert_eq!(told, [hidden(0)], "{path:?}");
        assert!(found[0].path.contains("⟨U+FE0F⟩"), "{found:?}");
    }
}

/// S-19: a file that chooses, configures or replaces what runs the tests is asked about.
#[test]
fn what_decides_how_tests_are_run_is_known_by_name() {
    for path in [
        ".npmrc",
        "web/.yarnrc.yml",
        ".yarnrc",
        ".pnpmfile.cjs",
        ".pnpmfile.mjs",
        "bunfig.toml",
        "vite.config.ts",
        "vitest.config.mts",
        "vitest.workspace.ts",
        ".mocharc.cjs",
        ".mocharc.yaml",
        ".mocharc",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "Taskfile.yml",
        "Taskfile.yaml",
        "taskfile.dist.yaml",
        "justfile",
        ".justfile",
        "tests.just",
        "CMakeLists.txt",
        "cmake/CTestTestfile.cmake",
        "gradle/wrapper/gradle-wrapper.properties",
        ".mvn/jvm.config",
        ".mvn/wrapper/maven-wrapper.properties",
        "tox.toml",
        "pytest.toml",
        ".pytest.toml",
        "phpunit.dist.xml",
        "Rakefile.rb",
        "build/rules.mk",
        ".bazelrc",
        "src/sitecustomize.py",
        "usercustomize.py",
    ] {
        assert_eq!(
            of(path, "", "x\n"),
            [(0, Subject::Harness, NeedsApproval)],
            "{path}"
        );
    }
    for path in [
        "docs/npmrc.md",
        "vite.md",
        "src/mocharc.js",
        "just",
        "lists.txt",
        "src/pytest.rs",
    ] {
        assert_eq!(of(path, "", "x\n"), [], "{path}");
    }
}

/// S-19: the script that an operator named as the test command decides what the tests are, whatever it is called.
#[test]
fn a_file_that_the_test_command_names_is_harness() {
    let named = |command: &[&str], path: &str| {
        let change = Change {
            path,
            before: Side::File(b"exec cargo test\n"),
            after: Side::File(b"exit 0\n"),
            marks: &[],
        };
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        harness_of(&command, &[change])
    };
    assert_eq!(
        named(&["./scripts/test.sh"], "scripts/test.sh"),
        [Objection {
            path: "scripts/test.sh".to_owned(),
            line: 0,
            subject: Subject::Harness,
            severity: NeedsApproval,
            evidence: "the test command names it".to_owned(),
        }]
    );
    for (command, path) in [
        (&["python", "run_tests.py"][..], "run_tests.py"),
        (&["python", "Run_Tests.py"], "run_tests.PY"),
        (&["sh", "-c", "cd . && ./ci/all.sh -q; true"], "ci/all.sh"),
        (&["sh", "-c", "CI=1 \"a/b\"|tee x"], "a/b"),
        (&["pytest", "--rootdir=.", "--config-file=ci/py.cfg"], "ci/py.cfg"),
        (&["a//b/../c/./run"], "a/c/run"),
        (&["/run"], "run"),
        (&["./all the tests.sh"], "all the tests.sh"),
    ] {
        assert_eq!(named(command, path).len(), 1, "{command:?} {path}");
    }
    for (command, path) in [
        (&["cargo", "test"][..], "src/test"),
        (&["pytest", "tests/"], "tests/a.py"),
        (&["./scripts/test.sh"], "test.sh"),
        (&["./scripts/test.sh"], "scripts/test.sh.md"),
        (&[], "a"),
    ] {
        assert_eq!(named(command, path), [], "{command:?} {path}");
    }
}

/// S-19: `pyproject.toml` holds dependencies, words about the project, and what runs its tests: only the last is harness.
#[test]
fn a_pyproject_is_harness_where_it_steers_tools() {
    let old = "[project]\nname = \"a\"\nversion = \"1\"\ndependencies = [\"b\"]\n[build-system]\nrequires = [\"hatchling\"]\n\
               build-backend = \"hatchling.build\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
    let harness = [(0, Subject::Harness, NeedsApproval)];
    for (from, to) in [
        ("addopts = \"-q\"", "addopts = \"-q --co\""),
        ("hatchling.build\"", "evil\"\nbackend-path = [\".\"]"),
        (
            "[tool.pytest",
            "[project.entry-points.pytest11]\nx = \"x\"\n[tool.pytest",
        ),
        (
            "[tool.pytest",
            "[tool.hatch.envs.test.scripts]\nrun = \"true\"\n[tool.pytest",
        ),
        ("[tool.pytest", "not toml ["),
    ] {
        assert_eq!(
            of("a/pyproject.toml", old, &old.replace(from, to)),
            harness,
            "{to}"
        );
    }
    assert_eq!(of("pyproject.toml", "", old), harness);
    assert_eq!(of("pyproject.toml", old, ""), harness);
    for (from, to) in [
        ("version = \"1\"", "version = \"2\"\ndescription = \"words\""),
        ("[\"b\"]", "[\"b>=2\", \"c\"]"),
        (
            "[tool.pytest",
            "[dependency-groups]\ntest = [\"pytest\"]\n[tool.pytest",
        ),
        (
            "[tool.pytest",
            "[tool.poetry.dependencies]\nc = \"1\"\n[tool.pytest",
        ),
        ("-q\"", "-q\" # quiet"),
    ] {
        assert_eq!(of("pyproject.toml", old, &old.replace(from, to)), [], "{to}");
    }
    let words = "[project]\nname = \"a\"\ndependencies = []\n";
    assert_eq!(of("pyproject.toml", "", words), []);
}

/// S-19: hostile: a manifest that some tool reads and this one does not is not taken for the same as before.
#[test]
fn two_manifests_that_cannot_be_read_are_not_the_same() {
    let old = "\u{feff}{\"scripts\": {\"test\": \"jest\"}}";
    for (path, before) in [("package.json", old), ("pyproject.toml", "[tool.x")] {
        let found = of(path, before, &before.replace("jest", "true").replace(".x", ".y"));
        assert!(
            found.contains(&(0, Subject::Harness, NeedsApproval)),
            "{path}: {found:?}"
        );
    }
}

/// SEC-4: patterns of operators run in linear time, or are refused.
#[test]
fn patterns_apply_where_they_say_and_explosive_ones_are_refused() {
    let subject = || Subject::Pattern("no-console".to_owned());
    assert_eq!(
        of("web/a.js", "", "a\nconsole.log(1)\n"),
        [(2, subject(), NeedsApproval)]
    );
    assert_eq!(of("server/a.js", "", "console.log(1)\n"), []);
    assert_eq!(of("web/a.js", "console.log(1)\n", "console.log(1)\nb\n"), []);
    let make = |expression: &str| Pattern::new("p", expression, Violation, "").map(|_| ());
    assert_eq!(make(&"a".repeat(501)), Err(InvalidPattern::TooLong(501)));
    assert_eq!(make("x*"), Err(InvalidPattern::MatchesEverything));
    assert!(matches!(make("(a"), Err(InvalidPattern::Unusable(_))));
    assert!(matches!(
        make(r"\w{1000}{1000}"),
        Err(InvalidPattern::Unusable(_))
    ));
    assert!(matches!(make(r"(?=look)"), Err(InvalidPattern::Unusable(_))));
    // A backtracking engine would not come back from this one.
    let slow = Pattern::new("p", r"(a+)+$", Violation, "").expect("valid");
    let inspector = Inspector::new(Limits::default(), vec![slow], LiveSecrets::new([]));
    let line = "a".repeat(9000) + "b";
    let change = Change {
        path: "a",
        before: Side::Absent,
        after: Side::File(line.as_bytes()),
        marks: &[],
    };
    assert_eq!(inspector.inspect(&[change], &["a".to_owned()]), []);
}

/// SEC-1, SEC-4: the tools may not write what may not be pushed, and the other way round: an override of the one would lead
/// nowhere without the other.
#[test]
fn tools_and_inspection_forbid_the_same_paths() {
    let authority = Authority::shipped();
    for path in [
        ".github/workflows",
        ".github/workflows/ci.yml",
        ".github/actions/a/action.yml",
        ".gitlab/ci/a.yml",
        ".circleci/config.yml",
        "CODEOWNERS",
        ".github/CODEOWNERS",
        "docs/CODEOWNERS",
        ".gitlab/CODEOWNERS",
        ".github/settings.yml",
        ".github/settings.yaml",
        ".github/dependabot.yml",
        ".github/dependabot.yaml",
        ".gitlab-ci.yml",
        "azure-pipelines.yml",
        "Jenkinsfile",
        ".travis.yml",
        "src/CODEOWNERS",
        ".github/workflows.md",
        ".github/settings.md",
        ".gitlab/a.yml",
        "src/lib.rs",
    ] {
        let change = Change {
            path,
            before: Side::Absent,
            after: Side::File(b"a\n"),
            marks: &[],
        };
        let found = inspector().inspect(&[change], &[path.to_owned()]);
        let is_found = found
            .iter()
            .any(|objection| objection.subject == Subject::Tree(FindingKind::ForbiddenPath));
        for tool in ["create_file", "str_replace"] {
            let asked = Request::of_tool(Role::Implementer, tool, path).expect("a tool");
            let is_denied = authority.judge(&asked).ruling == Ruling::Deny;
            assert_eq!(is_found, is_denied, "{tool} {path}");
        }
    }
}

/// S-47, S-49: what a reader of a difference would not see is counted: whole lines of what comes, and lines of which a part
/// is hidden that nothing else objects to; lines that stood there or go count for nothing.
#[test]
fn what_a_reader_would_not_see_is_counted() {
    let head = ["-----BEGIN ", "RSA PRIVATE KEY-----"].concat();
    let hint = "password=correcthorse";
    let of = |rendered: &str| {
        let Unshown { lines, parts } = inspector().unshown(rendered);
        (lines, parts)
    };
    assert_eq!(of("+let a = 1;\n-let b = 2;\n"), (0, 0));
    // The head hides what stands below it.
    assert_eq!(of(&format!("@@\n+{head}\n+let a = 1;\n+let b = 2;\n")), (3, 0));
    assert_eq!(of(&format!("@@\n {head}\n-let a = 1;\n+let b = 2;\n")), (1, 0));
    assert_eq!(of(&format!("@@\n-{head}\n let a = 1;\n-let b = 2;\n")), (0, 0));
    assert_eq!(of(&format!("+{hint}\n")), (0, 1));
    assert_eq!(of(&format!("@@\n+a\r+{hint}\r+b\n+{hint}\n")), (0, 2));
    assert_eq!(of(&format!(" {hint}\n-{hint}\n")), (0, 0));
    // A token is an objection of its own, and hides no more than itself; a whole key hides its lines.
    assert_eq!(of(&format!("@@\n+key = {}\n", token())), (0, 0));
    let body = "MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0buozvHEpAFVbdr5nQ0t0Sd";
    let foot = head.replace("BEGIN", "END");
    assert_eq!(
        of(&format!("@@\n+{head}\n+{body}\n+{foot}\n+let a = 1;\n")),
        (3, 0)
    );
}

/// SEC-4: hostile: many secrets on one long line, in what was added and in what is shown. Time that grows with the square of
/// their number would take minutes here.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
fn a_line_full_of_secrets_takes_no_longer_than_as_many_lines() {
    let started = std::time::Instant::now();
    let count = 40_000;
    let line = "token=abc123 ".repeat(count);
    let unshown = inspector().unshown(&format!("+{line}\n"));
    assert_eq!(unshown.parts, count);
    let likely = "password=k3Qz9!xW7mPv ".repeat(count);
    let (before, after) = (format!("{likely}a\n"), format!("{likely}b\n"));
    let added = of("a.txt", &before, &after);
    assert!(added.contains(&(1, Subject::Secret, NeedsApproval)));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

/// SEC-4, S-49: what only may be a secret is no objection in one line, and is one where it stands for several: any other could
/// stand among them.
#[test]
fn a_hint_of_a_secret_counts_where_it_hides_other_lines() {
    let head = ["-----BEGIN ", "RSA PRIVATE KEY-----"].concat();
    let secret = vec![(2, Subject::Secret, NeedsApproval)];
    assert_eq!(of("a.txt", "", &format!("a\n{head}\nlet a = 1;\n")), secret);
    assert_eq!(of("a.txt", "", &format!("a\n{head}")), []);
    assert_eq!(of("a.txt", "", "password=correcthorse\n"), []);
}

/// SEC-4: hostile: between the armour of what only looks like a key a secret is none of its parts, neither of a file nor of a
/// name, and however many heads stand before it.
#[test]
fn what_looks_like_a_key_hides_no_secret() {
    let head = ["-----BEGIN RSA PRI", "VATE KEY-----"].concat();
    let foot = ["-----END RSA PRI", "VATE KEY-----"].concat();
    let line = format!("{head} {} {foot}", token());
    let secret = (1, Subject::Secret, Severity::Violation);
    assert_eq!(
        of("a.txt", "", &format!("{line}\n")),
        std::slice::from_ref(&secret)
    );
    assert_eq!(of("a.txt", "", &format!("{head} {line}\n")), [secret]);
    assert_eq!(of("a.txt", "", &format!("{head} {foot}\n")), []);
    let below = format!("one line\n{line}\nand another\n");
    assert_eq!(
        of("a.txt", "", &below),
        [(2, Subject::Secret, Severity::Violation)]
    );
    let named = whole(&format!("{line}.txt"), "", "a\n");
    let evidence: Vec<&str> = named.iter().map(|it| it.evidence.as_str()).collect();
    assert_eq!(evidence, ["in the path: github-token"]);
}

/// SEC-4: of what was taken out again only that counts which leaves with the commit that brought it.
#[test]
fn what_was_taken_out_again_counts_where_it_leaves_all_the_same() {
    let text = format!("{}\nhidden\u{200b}\nconsole.log(1)\n", token());
    let change = Change {
        path: "web/a.js",
        before: Side::Absent,
        after: Side::File(text.as_bytes()),
        marks: &[FindingKind::CollidingName],
    };
    let subjects =
        |found: Vec<Objection>| -> Vec<Subject> { found.into_iter().map(|it| it.subject).collect() };
    let pattern = Subject::Pattern("no-console".to_owned());
    assert_eq!(
        subjects(inspector().inspect_passing(&[change])),
        [Subject::Secret, pattern.clone()]
    );
    assert_eq!(
        subjects(inspector().inspect_without_plan(&[change])),
        [
            Subject::Tree(FindingKind::CollidingName),
            Subject::Secret,
            Subject::HiddenText,
            pattern
        ]
    );
}

/// S-51: a plan that is compared by other means takes no place among what is objected to: a token in the last of very many
/// files is found.
#[test]
fn files_outside_a_plan_that_is_not_asked_about_hide_none_behind_them() {
    let (paths, token): (Vec<String>, _) = ((0..2_500).map(|n| format!("{n:04}.txt")).collect(), token());
    let changes: Vec<Change<'_>> = paths
        .iter()
        .map(|path| Change {
            path,
            before: Side::Absent,
            after: Side::File(if path == "2499.txt" {
                token.as_bytes()
            } else {
                b"a\n"
            }),
            marks: &[],
        })
        .collect();
    let found = inspector().inspect_without_plan(&changes);
    let subjects: Vec<&Subject> = found.iter().map(|it| &it.subject).collect();
    assert_eq!(subjects, [&Subject::ManyFiles, &Subject::Secret]);
}

/// S-48: hostile: a file can be made of nothing but what is objected to. What is listed is bounded, which is
/// objected to, too; what is the same twice does not count twice.
#[test]
fn objections_without_end_are_cut_and_it_is_said() {
    let hidden = "\u{200b}\n".repeat(300_000);
    let found = whole("src/a.rs", "", &hidden);
    assert!((200 * 5..200 * 20).contains(&found.len()), "{}", found.len());
    let unfinished = Objection {
        path: String::new(),
        line: 0,
        subject: Subject::Unfinished,
        severity: Severity::Violation,
        evidence: "more than 2000, so that the rest was not looked at".to_owned(),
    };
    assert_eq!(found[0], unfinished);
    let all = whole("src/a.rs", "", &"\u{200b}\n".repeat(2_000));
    assert_eq!((all.len(), all.contains(&unfinished)), (2_000, false));
    let token = token();
    let many = format!("{}\nb\u{200b}\n", format!("{token} ").repeat(5_000));
    let lines: Vec<usize> = of("src/a.rs", "", &many).iter().map(|it| it.0).collect();
    assert_eq!(
        lines,
        [1, 1, 2],
        "one for all tokens of the line, one for its length"
    );
}
