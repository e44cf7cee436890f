//! The contract of [`TargetAdapter`]: what every place for skills must do, and must never do (SKILL-1).
//!
//! ```ignore
//! async fn subject() -> conductor_contract::target::TargetSubject { … }
//! conductor_contract::target_contract!(crate::subject);
//! ```
//!
//! The environment needs `mkdir`, `cat`, `cp`, `ls`, `touch`, `rm` and `test`. The cases know nothing of what lies behind
//! the adapter.

use std::any::Any;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_port::target::{
    Changed, Found, Installed, Mode, Placement, Removed, TargetAdapter, TargetFault,
};

/// A fresh place for skills.
#[derive(Debug)]
pub struct TargetSubject {
    /// The adapter.
    pub adapter: Arc<dyn TargetAdapter>,
    /// A directory of the environment, not made yet, whose parent is not made either.
    pub root: PathBuf,
    /// An empty directory of this host for sources.
    pub sources: PathBuf,
    /// How skills are asked to be put.
    pub mode: Mode,
    /// Whatever must live as long as the environment.
    pub guard: Box<dyn Any + Send + Sync>,
}

macro_rules! target_suite {
    ($d:tt $($case:ident)+) => {
        /// Every case; each takes a fresh subject and panics when it breaks the contract.
        pub mod cases {
            $(
                #[allow(missing_docs, reason = "a case is documented where it is written")]
                pub async fn $case(subject: super::TargetSubject) {
                    super::$case(&subject).await;
                }
            )+
        }

        /// Makes a test of every case. `$make` is the absolute path of an `async fn() -> TargetSubject`.
        #[macro_export]
        macro_rules! target_contract {
            ($d make:path) => {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $case() {
                        $d crate::target::cases::$case($d make().await).await;
                    }
                )+
            };
        }
    };
}

target_suite! { $
    an_empty_place_is_healthy_and_holds_nothing
    a_skill_arrives_whole_and_its_parents_are_made
    a_second_install_changes_nothing
    a_new_version_leaves_nothing_of_the_old_one
    a_removed_skill_is_gone_and_nothing_beside_it
    what_is_foreign_is_neither_replaced_nor_removed
    a_marker_that_was_copied_along_makes_nothing_ours
    a_change_by_hand_is_seen_and_kept
    what_was_left_by_an_install_that_was_cut_off_does_no_harm
    a_source_that_leads_out_of_itself_is_refused_before_anything_changes
    names_are_never_read_as_commands
    the_home_directory_is_refused
    many_skills_arrive_at_once
    programs_get_exactly_their_arguments
}

impl TargetSubject {
    fn source(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = self.sources.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).expect("removed");
        }
        for (path, content) in files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(&path, content).expect("written");
            if path.extension().is_some_and(|extension| extension == "sh") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
            }
        }
        directory
    }

    fn place(&self, name: &str) -> Placement {
        Placement::new(&self.root, name).expect("a fine place")
    }

    async fn install(&self, source: &Path, name: &str) -> Result<Installed, TargetFault> {
        let place = self.place(name);
        self.adapter
            .install(source, &place, self.mode, Changed::Keep)
            .await
    }

    async fn found(&self, name: &str) -> Found {
        let found = self
            .adapter
            .inspect(&[self.place(name)])
            .await
            .expect("the place answers");
        found.into_iter().next().expect("one answer for one place")
    }

    /// Runs a program there, which must succeed, and returns what it printed.
    async fn run(&self, argv: &[&str]) -> String {
        let words: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let output = self.adapter.exec(&words).await.expect("the program starts");
        assert_eq!(output.status, 0, "{argv:?}: {}", output.stderr);
        output.stdout
    }

    async fn read(&self, path: &str) -> String {
        self.run(&["cat", "--", &self.root.join(path).display().to_string()])
            .await
    }

    async fn list(&self) -> Vec<String> {
        let listed = self.run(&["ls", "-A", &self.root.display().to_string()]).await;
        listed.lines().map(str::to_owned).collect()
    }
}

fn managed(installed: &Installed) -> Found {
    Found::Managed {
        mode: installed.mode,
        recorded: installed.digest.clone(),
        actual: installed.digest.clone(),
    }
}

const ALPHA: &[(&str, &str)] = &[
    ("SKILL.md", "---\nname: alpha\ndescription: d\n---\n"),
    ("scripts/run.sh", "#!/bin/sh\necho hi\n"),
    ("docs/é ü.md", "\u{feff}bytes\r\n"),
    ("docs/empty", ""),
];

async fn an_empty_place_is_healthy_and_holds_nothing(subject: &TargetSubject) {
    let vitals = subject.adapter.health_check().await.expect("a healthy place");
    assert!(!vitals.identity.is_empty());
    assert_eq!(subject.found("alpha").await, Found::Absent);
    let exists = subject.adapter.path_exists(&subject.root).await;
    assert_eq!(exists, Ok(false), "looking makes nothing");
    assert!(!subject.adapter.adapter_type().is_empty());
}

/// SKILL-2. Defect 2: the parent was not made, so the copy failed.
async fn a_skill_arrives_whole_and_its_parents_are_made(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let installed = subject.install(&source, "alpha").await.expect("installed");
    for (path, content) in ALPHA {
        assert_eq!(subject.read(&format!("alpha/{path}")).await, *content, "{path}");
    }
    let script = subject.root.join("alpha/scripts/run.sh").display().to_string();
    subject.run(&["test", "-x", &script]).await;
    assert_eq!(subject.found("alpha").await, managed(&installed));
    assert_eq!(subject.list().await, ["alpha"], "nothing else is left");
    let exists = subject
        .adapter
        .path_exists(&subject.root.join("alpha/SKILL.md"))
        .await;
    assert_eq!(exists, Ok(true));
}

async fn a_second_install_changes_nothing(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let first = subject.install(&source, "alpha").await.expect("installed");
    let second = subject.install(&source, "alpha").await.expect("installed again");
    assert_eq!(first, second);
    assert_eq!(subject.found("alpha").await, managed(&first));
}

/// Defect 18: files that the new version does not have stayed.
async fn a_new_version_leaves_nothing_of_the_old_one(subject: &TargetSubject) {
    let old = subject.source(
        "old",
        &[
            ("SKILL.md", "1"),
            ("stale.sh", "rm"),
            ("sub/stale", "x"),
            ("turns", "file"),
        ],
    );
    subject.install(&old, "alpha").await.expect("installed");
    let new = subject.source("new", &[("SKILL.md", "2"), ("turns/into", "directory")]);
    let installed = subject.install(&new, "alpha").await.expect("updated");
    assert_eq!(subject.found("alpha").await, managed(&installed));
    assert_eq!(subject.read("alpha/SKILL.md").await, "2");
    assert_eq!(subject.read("alpha/turns/into").await, "directory");
    for stale in ["alpha/stale.sh", "alpha/sub"] {
        let exists = subject.adapter.path_exists(&subject.root.join(stale)).await;
        assert_eq!(exists, Ok(false), "{stale}");
    }
    assert_eq!(subject.list().await, ["alpha"]);
}

async fn a_removed_skill_is_gone_and_nothing_beside_it(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    for name in ["alpha", "alpha-2"] {
        subject.install(&source, name).await.expect("installed");
    }
    let place = subject.place("alpha");
    assert_eq!(
        subject.adapter.uninstall(&place, Changed::Keep).await,
        Ok(Removed::Gone)
    );
    assert_eq!(subject.found("alpha").await, Found::Absent);
    assert_eq!(
        subject.adapter.uninstall(&place, Changed::Keep).await,
        Ok(Removed::WasAbsent)
    );
    assert_eq!(subject.list().await, ["alpha-2"]);
    assert_eq!(subject.read("alpha-2/docs/empty").await, "");
    assert!(source.join("SKILL.md").exists(), "the source stays");
}

/// Defect 4: a removal took what somebody else had put there.
async fn what_is_foreign_is_neither_replaced_nor_removed(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let root = subject.root.display().to_string();
    subject.run(&["mkdir", "-p", &format!("{root}/alpha")]).await;
    subject
        .run(&["touch", &format!("{root}/alpha/mine"), &format!("{root}/beta")])
        .await;
    for name in ["alpha", "beta"] {
        assert!(
            matches!(subject.found(name).await, Found::Foreign { .. }),
            "{name}"
        );
        for changed in [Changed::Keep, Changed::Discard] {
            let place = subject.place(name);
            let put = subject
                .adapter
                .install(&source, &place, subject.mode, changed)
                .await;
            assert!(matches!(put, Err(TargetFault::Foreign { .. })), "{name}: {put:?}");
            let taken = subject.adapter.uninstall(&place, changed).await;
            assert!(
                matches!(taken, Err(TargetFault::Foreign { .. })),
                "{name}: {taken:?}"
            );
        }
    }
    assert_eq!(subject.list().await, ["alpha", "beta"]);
    assert_eq!(subject.read("alpha/mine").await, "");
}

async fn a_marker_that_was_copied_along_makes_nothing_ours(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    subject.install(&source, "alpha").await.expect("installed");
    let root = subject.root.display().to_string();
    subject
        .run(&["cp", "-rL", &format!("{root}/alpha"), &format!("{root}/fork")])
        .await;
    assert!(matches!(subject.found("fork").await, Found::Foreign { .. }));
    let taken = subject
        .adapter
        .uninstall(&subject.place("fork"), Changed::Discard)
        .await;
    assert!(matches!(taken, Err(TargetFault::Foreign { .. })), "{taken:?}");
}

/// BEY-8: work that somebody did in a target is not lost without a word. A link has no copy that could be changed.
async fn a_change_by_hand_is_seen_and_kept(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let installed = subject.install(&source, "alpha").await.expect("installed");
    if installed.mode == Mode::Symlink {
        return assert_eq!(subject.found("alpha").await, managed(&installed));
    }
    let note = subject.root.join("alpha/note").display().to_string();
    subject.run(&["touch", &note]).await;
    let found = subject.found("alpha").await;
    let is_seen = matches!(&found, Found::Managed { recorded, actual, .. } if *recorded == installed.digest && actual != recorded);
    assert!(is_seen, "{found:?}");
    let other = subject.source("other", &[("SKILL.md", "2")]);
    let place = subject.place("alpha");
    let put = subject.install(&other, "alpha").await;
    assert!(matches!(put, Err(TargetFault::ChangedByHand { .. })), "{put:?}");
    let taken = subject.adapter.uninstall(&place, Changed::Keep).await;
    assert!(
        matches!(taken, Err(TargetFault::ChangedByHand { .. })),
        "{taken:?}"
    );
    subject.run(&["test", "-f", &note]).await;
    let put = subject
        .adapter
        .install(&other, &place, subject.mode, Changed::Discard)
        .await;
    assert_eq!(subject.found("alpha").await, managed(&put.expect("discarded")));
}

async fn what_was_left_by_an_install_that_was_cut_off_does_no_harm(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let root = subject.root.display().to_string();
    subject
        .run(&["mkdir", "-p", &format!("{root}/.conductor-new-alpha/left")])
        .await;
    let installed = subject.install(&source, "alpha").await.expect("installed");
    assert_eq!(subject.found("alpha").await, managed(&installed));
    assert_eq!(subject.list().await, ["alpha"]);
}

async fn a_source_that_leads_out_of_itself_is_refused_before_anything_changes(subject: &TargetSubject) {
    let good = subject.source("good", ALPHA);
    let installed = subject.install(&good, "alpha").await.expect("installed");
    let bad = subject.source("bad", &[("SKILL.md", "x")]);
    std::os::unix::fs::symlink("/etc/passwd", bad.join("secret")).expect("linked");
    assert!(subject.install(&bad, "alpha").await.is_err());
    assert_eq!(subject.found("alpha").await, managed(&installed));
    assert_eq!(subject.list().await, ["alpha"]);
}

/// Defect 17: a path went through `sh -c "…"`, and `$()` in it was run.
async fn names_are_never_read_as_commands(subject: &TargetSubject) {
    let source = subject.source("alpha", ALPHA);
    let pwned = subject.root.join("pwned").display().to_string();
    for part in [
        "$(touch pwned)",
        "`touch pwned`",
        "a\"; touch pwned; \"",
        "a'b",
        "-rf",
        "a b",
        "*",
    ] {
        let root = subject.root.join(part);
        let part_place = Placement::new(&root, "alpha").expect("strange, but a place");
        let put = subject
            .adapter
            .install(&source, &part_place, subject.mode, Changed::Keep)
            .await;
        let put = put.unwrap_or_else(|fault| panic!("{part}: {fault}"));
        let found = subject.adapter.inspect(std::slice::from_ref(&part_place)).await;
        assert_eq!(found, Ok(vec![managed(&put)]), "{part}");
        let taken = subject.adapter.uninstall(&part_place, Changed::Keep).await;
        assert_eq!(taken, Ok(Removed::Gone), "{part}");
    }
    for at in [pwned.as_str(), "/pwned", "pwned"] {
        assert_eq!(
            subject.adapter.path_exists(Path::new(at)).await,
            Ok(false),
            "{at}"
        );
    }
}

async fn the_home_directory_is_refused(subject: &TargetSubject) {
    let vitals = subject.adapter.health_check().await.expect("a healthy place");
    let home = vitals.home.expect("the suite's environment has a home");
    let source = subject.source("alpha", ALPHA);
    let (Some(parent), Some(name)) = (home.parent(), home.file_name().and_then(|name| name.to_str())) else {
        panic!("{} is no home for this suite", home.display());
    };
    // A home right below the top cannot even be written as a placement.
    if let Ok(place) = Placement::new(parent, name) {
        let put = subject
            .adapter
            .install(&source, &place, subject.mode, Changed::Discard)
            .await;
        assert!(matches!(put, Err(TargetFault::Refused { .. })), "{put:?}");
        let taken = subject.adapter.uninstall(&place, Changed::Discard).await;
        assert!(matches!(taken, Err(TargetFault::Refused { .. })), "{taken:?}");
    } else {
        assert_eq!(parent, Path::new("/"));
    }
}

/// SKILL-1: adapters are used at once.
async fn many_skills_arrive_at_once(subject: &TargetSubject) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let name = format!("skill-{number}");
        let text = format!("content of {number}");
        let source = subject.source(&name, &[("SKILL.md", text.as_str())]);
        let (adapter, place, mode) = (Arc::clone(&subject.adapter), subject.place(&name), subject.mode);
        tasks.spawn(async move { adapter.install(&source, &place, mode, Changed::Keep).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic").expect("installed");
    }
    let places: Vec<Placement> = (0..8)
        .rev()
        .map(|number| subject.place(&format!("skill-{number}")))
        .collect();
    let found = subject.adapter.inspect(&places).await.expect("answers");
    assert_eq!(found.len(), 8);
    assert!(
        found.iter().all(|found| matches!(found, Found::Managed { .. })),
        "{found:?}"
    );
    assert_eq!(subject.read("skill-3/SKILL.md").await, "content of 3");
}

async fn programs_get_exactly_their_arguments(subject: &TargetSubject) {
    let words = ["printf", "%s|", "a b", "$HOME", "`id`", "", "*"];
    assert_eq!(subject.run(&words).await, "a b|$HOME|`id`||*|");
    let output = subject
        .adapter
        .exec(&["test".to_owned(), "-e".to_owned(), "/nowhere".to_owned()])
        .await;
    assert_eq!(output.map(|output| output.status), Ok(1));
}
