//! Inspects the exact commit that is to be pushed, and what the commits on the way to it held (SEC-4, SEC-5, S-10, S-11).
//!
//! What is wrong with a change is the policy crate's to know; here it becomes findings, with redacted evidence. Whether a
//! path is outside the approved plan is not decided here: this module does not know the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::diff::{ChangeClass, Finding, FindingKind, Inspection, Severity, bounded};
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_domain::relief::Relief;
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use conductor_policy::authority::{Action, Actor, Authority, Request, Ruling, Target};
use conductor_policy::hidden::{visible, visible_name};
use conductor_policy::inspect::class::class_of;
use conductor_policy::inspect::{self, Inspector, Objection, Subject, Unshown};
use conductor_policy::supply::{self, ChangedFile, SupplyChange};
use conductor_port::workspace::{Change, Diff, Side};

use super::Performance;
use super::aside::aside;
use crate::rules;

/// How many characters of a dependency's name stand in a finding.
const LONGEST_NAME: usize = 80;
/// What a changed path counts for beside its bytes.
const PATH_WEIGHT: usize = 1024;

/// Inspects the difference between two commits. If repeated: it says the same again.
pub(super) async fn inspect(
    performance: &Performance<'_>,
    base: &CommitId,
    head: &CommitId,
) -> Result<Report, Fault> {
    let diff = performance
        .ports()
        .workspace
        .diff(performance.run(), base, head)
        .await?;
    let run = performance.state().await?;
    let judge = Judge {
        inspector: Arc::clone(&performance.engine.options.inspector),
        authority: rules::of_run(performance.engine, &run.spec).await?,
        reliefs: run.reliefs,
        test_command: run.spec.test_command,
        repo: performance.repo().to_string(),
    };
    let (diff, judgement) = judged_aside(judge, diff).await?;
    let list = judgement.dependencies;
    let dependencies = if list.is_empty() {
        None
    } else {
        Some(performance.keep(ArtifactKind::Dependencies, &list).await?)
    };
    let rendered = performance.keep(ArtifactKind::Diff, &diff.rendered).await?;
    Ok(Report::DiffInspected {
        inspection: Inspection {
            digest: diff.digest,
            files: diff.changes.into_iter().map(|change| change.path).collect(),
            findings: judgement.findings,
            rendered,
            dependencies,
            class: judgement.class,
            unshown: diff.unshown,
        },
    })
}

/// What a change is judged by; owned, so that another thread can judge.
#[derive(Debug)]
struct Judge {
    inspector: Arc<Inspector>,
    authority: Arc<Authority>,
    reliefs: Vec<Relief>,
    test_command: Vec<String>,
    repo: String,
}

/// What came of it.
#[derive(Debug)]
struct Judgement {
    findings: Vec<Finding>,
    /// The list of dependencies; empty where none changed.
    dependencies: String,
    class: ChangeClass,
}

impl Judge {
    fn judge(&self, diff: &Diff) -> Judgement {
        let supply = supply(&diff.changes);
        let mut findings = content(&self.inspector, &self.test_command, diff);
        paths(&self.authority, &self.reliefs, &diff.changes, &mut findings);
        findings.extend(dependencies(&self.authority, &self.repo, &supply, &diff.changes));
        findings.extend(unshown(&self.inspector, &diff.rendered, ""));
        // Secrets are taken out of the list, too, and names can make one there that is none in their files.
        let list = supply.render();
        findings.extend(unshown(&self.inspector, &list, "in the list of dependencies: "));
        findings.extend(proposing(&self.authority, &self.repo));
        Judgement {
            findings: bounded(findings),
            dependencies: list,
            class: class_of(diff.changes.iter().map(|change| change.path.as_str())),
        }
    }
}

/// Judges a change beside what keeps the lease: a large one takes longer than that holds (DEP-3).
async fn judged_aside(judge: Judge, diff: Diff) -> Result<(Diff, Judgement), Fault> {
    aside(weight(&diff), move || {
        let judgement = judge.judge(&diff);
        (diff, judgement)
    })
    .await
}

/// Estimates how many bytes are gone through; to ask the policies about a path takes as long as some of them.
fn weight(diff: &Diff) -> usize {
    let changes = diff.changes.iter().chain(&diff.passing);
    let each = changes.map(|change| PATH_WEIGHT + bytes(&change.before).len() + bytes(&change.after).len());
    each.sum::<usize>() + diff.rendered.len()
}

/// Judges what the change adds, and what leaves with it in the commits on the way (a push carries those, too).
///
/// The run's test command says which files are its harness besides those that are known by name (S-19).
fn content(inspector: &Inspector, test_command: &[String], diff: &Diff) -> Vec<Finding> {
    let changes: Vec<inspect::Change<'_>> = diff.changes.iter().map(judged).collect();
    let passing: Vec<inspect::Change<'_>> = diff.passing.iter().map(judged).collect();
    // The approved plan is compared where the domain decides.
    let harness = inspect::harness_of(test_command, &changes);
    let now = inspector.inspect_without_plan(&changes);
    let now = now.into_iter().chain(harness);
    let earlier = inspector.inspect_passing(&passing).into_iter();
    let now = now.filter_map(|objection| finding(objection, ""));
    let earlier = earlier.filter_map(|objection| finding(objection, "in an earlier commit of the branch: "));
    // Nobody is shown what these hold, and it leaves all the same (SEC-4, S-49).
    let unread = diff.passing.iter().filter(|change| match change.after {
        Side::Unread { .. } => true,
        Side::Absent | Side::Bytes(_) | Side::Elsewhere => false,
    });
    let unread = unread.map(|change| Finding {
        evidence: "in an earlier commit of the branch: it is too large to be read".to_owned(),
        ..Finding::of_path(
            FindingKind::Unshown,
            visible_name(&change.path).text,
            Severity::Violation,
        )
    });
    now.chain(earlier).chain(unread).collect()
}

/// Asks the policies about every path that is changed, as if the Implementer's tool had changed it: a command can write
/// what a tool may not (SEC-1). What they allow of the paths that are forbidden otherwise is for a person to approve.
///
/// An override counts here though its time is up, unless it was taken back: what it let through was let through.
fn paths(authority: &Authority, reliefs: &[Relief], changes: &[Change], findings: &mut Vec<Finding>) {
    let mut forbidden = forbidden(findings);
    for change in changes {
        let tool = match change.before {
            Side::Absent => Action::CreateFile,
            Side::Bytes(_) | Side::Unread { .. } | Side::Elsewhere => Action::StrReplace,
        };
        let Some(asked) = Request::of_tool(Role::Implementer, tool.name(), &change.path) else {
            continue;
        };
        let verdict = authority.judge_with(&asked, reliefs, Timestamp::default());
        let evidence = format!("{}: {}", verdict.policy, verdict.reason);
        let shown = visible_name(&change.path).text;
        let severity = match verdict.ruling {
            Ruling::Allow => {
                for place in forbidden.get(&shown).into_iter().flatten() {
                    if let Some(finding) = findings.get_mut(*place) {
                        finding.severity = Severity::NeedsApproval;
                        finding.evidence.clone_from(&evidence);
                    }
                }
                continue;
            }
            Ruling::RequireApproval => Severity::NeedsApproval,
            Ruling::Deny => Severity::Violation,
        };
        if !forbidden.contains_key(&shown) {
            forbidden.insert(shown.clone(), vec![findings.len()]);
            findings.push(Finding {
                evidence,
                ..Finding::of_path(FindingKind::ForbiddenPath, shown, severity)
            });
        }
    }
}

/// Says of every path that was found forbidden, as it is shown, where among the findings; a change may have very many.
fn forbidden(findings: &[Finding]) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, finding) in findings.iter().enumerate() {
        if finding.kind == FindingKind::ForbiddenPath {
            places.entry(finding.path.clone()).or_default().push(place);
        }
    }
    places
}

/// Objects to what is pushed and not shown to whoever approves it, because it is taken out as a secret: whole lines are
/// refused, and of a part of a line it is said (S-47, S-49).
fn unshown(inspector: &Inspector, rendered: &str, whence: &str) -> Vec<Finding> {
    let Unshown { lines, parts } = inspector.unshown(rendered);
    let objections = [
        (
            lines,
            Severity::Violation,
            "lines are hidden, because a key seems to stand in them",
        ),
        (
            parts,
            Severity::NeedsApproval,
            "lines are hidden in part, because a secret seems to stand there",
        ),
    ];
    let found = objections.into_iter().filter(|(count, ..)| *count > 0);
    let found = found.map(|(count, severity, what)| Finding {
        evidence: format!("{whence}{count} {what}"),
        ..Finding::of_path(FindingKind::Unshown, "", severity)
    });
    found.collect()
}

fn judged(change: &Change) -> inspect::Change<'_> {
    inspect::Change {
        path: &change.path,
        before: held(&change.before),
        after: held(&change.after),
        marks: &change.findings,
    }
}

fn held(side: &Side) -> inspect::Side<'_> {
    match side {
        Side::Absent => inspect::Side::Absent,
        Side::Bytes(bytes) => inspect::Side::File(bytes),
        Side::Unread { size } => inspect::Side::Unread { size: *size },
        Side::Elsewhere => inspect::Side::Link,
    }
}

fn bytes(side: &Side) -> &[u8] {
    match side {
        Side::Bytes(bytes) => bytes,
        Side::Absent | Side::Unread { .. } | Side::Elsewhere => &[],
    }
}

fn finding(objection: Objection, whence: &str) -> Option<Finding> {
    let (kind, evidence) = match objection.subject {
        Subject::Tree(FindingKind::OutsidePlan) => return None,
        // What these are says it all.
        Subject::Tree(kind) => (kind, String::new()),
        Subject::Secret => (FindingKind::Secret, objection.evidence),
        Subject::EnvironmentFile => (FindingKind::EnvironmentFile, objection.evidence),
        Subject::Harness => (FindingKind::Harness, objection.evidence),
        Subject::LargeBinary => (FindingKind::LargeBinary, objection.evidence),
        Subject::LargeFile => (FindingKind::LargeFile, objection.evidence),
        Subject::LongLine => (FindingKind::LongLine, objection.evidence),
        Subject::HiddenText => (FindingKind::HiddenText, objection.evidence),
        Subject::MixedScripts => (FindingKind::MixedScripts, objection.evidence),
        Subject::Pattern(name) => (FindingKind::Pattern, format!("{name}: {}", objection.evidence)),
        Subject::ManyFiles => (FindingKind::ManyFiles, objection.evidence),
        Subject::Unfinished => (FindingKind::ManyFindings, objection.evidence),
    };
    Some(Finding {
        kind,
        path: objection.path,
        severity: objection.severity,
        line: u32::try_from(objection.line).unwrap_or(u32::MAX),
        evidence: format!("{whence}{evidence}"),
    })
}

/// Compares what the changed manifests and lock files ask for; what could not be read is never "nothing new" (SEC-5).
fn supply(changes: &[Change]) -> SupplyChange {
    let is_read = |side: &Side| match side {
        Side::Absent | Side::Bytes(_) => true,
        Side::Unread { .. } | Side::Elsewhere => false,
    };
    let manifests = changes.iter().filter(|change| supply::is_manifest(&change.path));
    let (read, unread): (Vec<&Change>, Vec<&Change>) =
        manifests.partition(|change| is_read(&change.before) && is_read(&change.after));
    let files: Vec<ChangedFile<'_>> = read
        .into_iter()
        .map(|change| ChangedFile {
            path: &change.path,
            before: bytes(&change.before),
            after: bytes(&change.after),
        })
        .collect();
    let mut supply = supply::compare(&files);
    for change in unread {
        let why = "it is larger than is read, or no file".to_owned();
        supply.unread.insert(change.path.clone(), why);
    }
    supply
}

/// Makes one finding of each manifest and lock file that changed; the list itself is kept and shown beside (SEC-5).
fn dependencies(
    authority: &Authority,
    repo: &str,
    supply: &SupplyChange,
    changes: &[Change],
) -> Vec<Finding> {
    let strictest = strictest(authority, repo, supply);
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let paths = [
        supply.added.keys().map(|(path, _)| path).collect::<Vec<_>>(),
        supply.changed.keys().map(|(path, _)| path).collect(),
        supply.removed.keys().map(|(path, _)| path).collect(),
    ];
    for (place, paths) in paths.iter().enumerate() {
        for path in paths {
            if let Some(count) = counts.entry(path).or_default().get_mut(place) {
                *count += 1;
            }
        }
    }
    let manifests = changes.iter().filter(|change| supply::is_manifest(&change.path));
    let found = manifests.filter_map(|change| {
        let [added, other, removed] = counts.get(change.path.as_str()).copied().unwrap_or_default();
        let counted = format!("{added} added, {other} changed, {removed} removed");
        let evidence = match supply.unread.get(&change.path) {
            Some(why) => format!("what it asks for is not known: {why}"),
            None => counted,
        };
        let is_all =
            supply::only_dependencies_changed(&change.path, bytes(&change.before), bytes(&change.after));
        let is_new = added > 0 || supply.unread.contains_key(&change.path);
        let coming = if is_new {
            FindingKind::NewDependency
        } else {
            FindingKind::DependencyChange
        };
        let (kind, severity) = match strictest.get(change.path.as_str()) {
            Some((Ruling::Allow, _)) if other + removed == 0 && is_all => return None,
            // What may be added is no leave to change the others, nor what else the file says.
            None | Some((Ruling::Allow, _)) => (FindingKind::DependencyChange, Severity::NeedsApproval),
            Some((Ruling::RequireApproval, _)) => (coming, Severity::NeedsApproval),
            Some((Ruling::Deny, _)) => (coming, Severity::Violation),
        };
        let evidence = match strictest.get(change.path.as_str()) {
            Some((Ruling::Deny, why)) => format!("{evidence}; {why}"),
            Some(_) | None => evidence,
        };
        Some(Finding {
            evidence,
            ..Finding::of_path(kind, change.path.clone(), severity)
        })
    });
    found.collect()
}

/// Asks about every version of every dependency that comes in, also of one that is known, and about each file that could
/// not be read, as one of no name; keeps the strictest answer for each file. What is allowed is allowed from where its kind
/// usually comes from: a place of its own is for a person to approve.
fn strictest<'a>(
    authority: &Authority,
    repo: &str,
    supply: &'a SupplyChange,
) -> BTreeMap<&'a str, (Ruling, String)> {
    let known = BTreeSet::new();
    let added = supply
        .added
        .iter()
        .map(|(place, versions)| (place, versions, &known));
    let changed = supply.changed.iter();
    let changed = changed.map(|(place, (before, after))| (place, after, before));
    let coming = added
        .chain(changed)
        .flat_map(|((path, dependency), versions, known)| {
            let named = (dependency.ecosystem, dependency.name.as_str());
            versions
                .difference(known)
                .map(move |version| (path.as_str(), named, version.as_str()))
        });
    let unread = supply.unread.keys().map(|path| (path.as_str(), ("", ""), ""));
    let mut strictest: BTreeMap<&str, (Ruling, String)> = BTreeMap::new();
    for (path, (ecosystem, name), version) in coming.chain(unread) {
        let target = Target::Dependency {
            repo: repo.to_owned(),
            ecosystem: ecosystem.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let asked = Request::new(Actor::Agent(Role::Implementer), Action::AddDependency, target);
        let verdict = authority.judge(&asked);
        let ruling = match verdict.ruling {
            Ruling::Allow if !supply::is_plain(version) => Ruling::RequireApproval,
            ruling @ (Ruling::Allow | Ruling::RequireApproval | Ruling::Deny) => ruling,
        };
        if strictest.get(path).is_none_or(|(known, _)| *known < ruling) {
            // What a manifest calls a dependency may hold anything, and is shown whole in the list.
            let shown: String = visible(name).text.chars().take(LONGEST_NAME).collect();
            let whose = if name.is_empty() {
                String::new()
            } else {
                format!("{ecosystem} {shown}: ")
            };
            let why = format!("{whose}{}: {}", verdict.policy, verdict.reason);
            strictest.insert(path, (ruling, why));
        }
    }
    strictest
}

/// Asks whether Conductor may push the branch and propose it; each no stops the run, each question opens its gate (SEC-1).
///
/// Both are asked before every push: a branch that may not be proposed has no reason to leave.
fn proposing(authority: &Authority, repo: &str) -> Vec<Finding> {
    let asked = [Action::Push, Action::OpenPullRequest].into_iter();
    let found = asked.filter_map(|action| {
        let target = Target::Repository {
            name: repo.to_owned(),
            change: None,
        };
        let verdict = authority.judge(&Request::new(Actor::Orchestrator, action, target));
        let severity = match verdict.ruling {
            Ruling::Allow => return None,
            Ruling::RequireApproval => Severity::NeedsApproval,
            Ruling::Deny => Severity::Violation,
        };
        Some(Finding {
            evidence: format!("{}: {}", action.name(), verdict.reason),
            ..Finding::of_path(
                FindingKind::Policy,
                format!("policy {}", verdict.policy),
                severity,
            )
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use conductor_domain::diff::MOST_FINDINGS;
    use conductor_domain::digest::Digest;
    use conductor_domain::id::OperatorName;
    use conductor_domain::relief::ReliefScope;
    use conductor_policy::authority::Layer;
    use conductor_policy::inspect::Limits;
    use conductor_policy::secret::live::LiveSecrets;

    use super::*;

    fn token() -> String {
        ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat()
    }

    fn inspector() -> Inspector {
        Inspector::new(Limits::default(), vec![], LiveSecrets::new([]))
    }

    fn test_command() -> Vec<String> {
        ["sh", "./scripts/all.sh"].map(str::to_owned).to_vec()
    }

    fn change(path: &str, before: &str, after: &str) -> Change {
        let side = |text: &str| {
            if text.is_empty() {
                Side::Absent
            } else {
                Side::Bytes(text.as_bytes().to_vec())
            }
        };
        Change {
            path: path.to_owned(),
            findings: vec![],
            before: side(before),
            after: side(after),
        }
    }

    fn diff(changes: Vec<Change>, passing: Vec<Change>) -> Diff {
        Diff {
            digest: Digest::of(b"x"),
            changes,
            passing,
            rendered: String::new(),
            unshown: vec![],
        }
    }

    fn found(diff: &Diff) -> Vec<String> {
        let findings = content(&inspector(), &test_command(), diff).into_iter();
        let findings = findings.chain(dependencies(
            &Authority::shipped(),
            "acme/thing",
            &supply(&diff.changes),
            &diff.changes,
        ));
        bounded(findings.collect())
            .into_iter()
            .map(|finding| {
                let severity = match finding.severity {
                    Severity::NeedsApproval => "ask",
                    Severity::Violation => "stop",
                };
                format!("{severity} {finding}")
            })
            .collect()
    }

    /// SEC-4, SEC-5, S-11, S-19: what stops a run and what asks a human, each with what was seen.
    #[test]
    fn each_rule_finds_its_change_and_leaves_the_others_alone() {
        let secret = format!("key = \"{}\"\n", token());
        for (given, expected) in [
            (change("src/a.rs", "", "fn a() {}\n"), vec![]),
            (
                change("src/a.rs", "x\n", &format!("x\n{secret}")),
                vec!["stop src/a.rs:2: secret: github-token"],
            ),
            (
                change(".GitHub/Workflows/ci.yml", "", "on: push\n"),
                vec!["stop .GitHub/Workflows/ci.yml: path that agents may not change"],
            ),
            (
                change("docs/CODEOWNERS", "a\n", ""),
                vec!["stop docs/CODEOWNERS: path that agents may not change"],
            ),
            (
                change("build.rs", "", "fn main() {}\n"),
                vec!["ask build.rs: test harness changed: runs when the tests are built"],
            ),
            (
                change("scripts/all.sh", "cargo test\n", "exit 0\n"),
                vec!["ask scripts/all.sh: test harness changed: the test command names it"],
            ),
            (
                change(
                    "Cargo.toml",
                    "[dependencies]\n",
                    "[dependencies]\nserde = \"1\"\n",
                ),
                vec!["ask Cargo.toml: new dependency: 1 added, 0 changed, 0 removed"],
            ),
            (
                change(
                    "Cargo.toml",
                    "[dependencies]\nserde = \"1\"\n",
                    "[dependencies]\nserde = \"2\"\n",
                ),
                vec!["ask Cargo.toml: dependencies changed: 0 added, 1 changed, 0 removed"],
            ),
            (
                // The same versions with another hash are no dependency's change, and a change all the same.
                change("Cargo.toml", "[profile.dev]\n", "[profile.dev]\nopt-level = 1\n"),
                vec!["ask Cargo.toml: dependencies changed: 0 added, 0 changed, 0 removed"],
            ),
            (
                change("Cargo.toml", "", "not toml ["),
                vec!["ask Cargo.toml: new dependency: what it asks for is not known"],
            ),
            (
                change("a.rs", "", "let a = 1; \u{202e}\n"),
                vec!["ask a.rs:1: hidden characters: let a = 1;"],
            ),
        ] {
            let path = given.path.clone();
            let found = found(&diff(vec![given], vec![]));
            assert_eq!(found.len(), expected.len(), "{path}: {found:?}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found.starts_with(expected), "{path}: {found}");
                assert!(!found.contains(&token()), "{found}");
            }
        }
    }

    /// SEC-4, S-10: a secret that a later commit took out again leaves with the branch, and is found.
    #[test]
    fn a_secret_of_an_earlier_commit_is_found_though_the_last_one_has_it_not() {
        let secret = format!("key = \"{}\"\n", token());
        let clean = change("a.py", "", "key = None\n");
        assert_eq!(found(&diff(vec![clean.clone()], vec![])), Vec::<String>::new());
        let earlier = vec![
            change("a.py", "", &secret),
            change(".github/workflows/ci.yml", "", "on: push\n"),
        ];
        assert_eq!(
            found(&diff(vec![clean], earlier)),
            ["stop a.py:1: secret: in an earlier commit of the branch: github-token"],
        );
    }

    /// SEC-4, S-49: what nobody can read does not leave inside an earlier commit.
    #[test]
    fn a_file_of_an_earlier_commit_that_is_not_read_stops_the_run() {
        let large = |before, after| Change {
            path: "big.txt".to_owned(),
            findings: vec![],
            before,
            after,
        };
        let unread = || Side::Unread { size: 3 << 20 };
        let stopped = |change| {
            let found = found(&diff(vec![], vec![change]));
            found
                .iter()
                .any(|found| found.starts_with("stop big.txt: not shown whole"))
        };
        assert!(stopped(large(Side::Absent, unread())));
        assert!(!stopped(large(unread(), Side::Absent)));
    }

    /// SEC-5: a manifest that is too large to be read is not one that brings nothing.
    #[test]
    fn a_manifest_that_is_not_read_counts_as_bringing_something() {
        let given = Change {
            path: "Cargo.lock".to_owned(),
            findings: vec![],
            before: Side::Absent,
            after: Side::Unread { size: 3 << 20 },
        };
        let found = found(&diff(vec![given], vec![]));
        assert!(
            found
                .iter()
                .any(|found| found.starts_with("ask Cargo.lock: new dependency")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|found| found.starts_with("ask Cargo.lock: large file")),
            "{found:?}"
        );
    }

    /// SEC-1, SEC-5: what a new dependency needs is the policy's to say.
    #[test]
    fn a_policy_decides_what_a_new_dependency_needs() {
        let added = [change("Cargo.toml", "", "[dependencies]\nserde = \"1\"\n")];
        let rules = |text: &str| Authority::new(&[(Layer::Project, text)]).expect("valid policies");
        let free = rules(
            "@id(\"new-dependency\") @reason(\"they may\")\npermit (principal is Agent, action == Action::\"add_dependency\", resource is Repository);",
        );
        let none = rules(
            "@id(\"no-dependency\") @reason(\"none ever\")\nforbid (principal is Agent, action == Action::\"add_dependency\", resource is Repository);",
        );
        let severities = |authority: &Authority| -> Vec<Severity> {
            let found = dependencies(authority, "acme/thing", &supply(&added), &added);
            found.into_iter().map(|finding| finding.severity).collect()
        };
        assert_eq!(severities(&free), []);
        assert_eq!(severities(&Authority::shipped()), [Severity::NeedsApproval]);
        assert_eq!(severities(&none), [Severity::Violation]);
    }

    /// SEC-1, SEC-5: each dependency is judged by its own name and version; one that is blocked is not missed among others,
    /// and what could not be read is on no list of allowed ones.
    #[test]
    fn a_policy_names_the_dependencies_that_are_allowed_or_blocked() {
        let rules = |text: &str| Authority::new(&[(Layer::Project, text)]).expect("valid policies");
        let found = |authority: &Authority, after: &str| -> Vec<String> {
            let changes = [change("Cargo.toml", "", after)];
            let found = dependencies(authority, "acme/thing", &supply(&changes), &changes).into_iter();
            found
                .map(|finding| format!("{:?} {}", finding.severity, finding.evidence))
                .collect()
        };
        let both = "[dependencies]\nanyhow = \"1\"\nleft-pad = \"1\"\nserde = \"1\"\n";
        let blocked = rules(
            "@id(\"blocked\") @reason(\"it broke once\")\nforbid (principal is Agent, action == Action::\"add_dependency\", resource is Repository) when { context.ecosystem == \"cargo\" && context.name == \"left-pad\" && context.version like \"1*\" };",
        );
        assert_eq!(
            found(&blocked, both),
            ["Violation 3 added, 0 changed, 0 removed; cargo left-pad: blocked: it broke once"]
        );
        assert_eq!(
            found(&blocked, &both.replace("left-pad = \"1\"", "left-pad = \"2\"")),
            ["NeedsApproval 3 added, 0 changed, 0 removed"]
        );
        let allowed = rules(
            "@id(\"new-dependency\") @reason(\"known ones\")\npermit (principal is Agent, action == Action::\"add_dependency\", resource is Repository) when { context.name == \"serde\" || context.name == \"anyhow\" };",
        );
        assert_eq!(found(&allowed, &both.replace("left-pad = \"1\"\n", "")), [""; 0]);
        let changes = [change(
            "Cargo.toml",
            "[dependencies]\nanyhow = \"1\"\n",
            "[dependencies]\nanyhow = \"2\"\nserde = \"1\"\n",
        )];
        let mixed = dependencies(&allowed, "acme/thing", &supply(&changes), &changes);
        assert_eq!(
            mixed.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
            [FindingKind::DependencyChange]
        );
        assert_eq!(
            found(&allowed, both),
            [
                "Violation 3 added, 0 changed, 0 removed; cargo left-pad: deny-by-default: no policy permits it"
            ]
        );
        let unread = found(&allowed, "not toml [");
        assert!(
            unread[0].starts_with("Violation what it asks for is not known"),
            "{unread:?}"
        );
    }

    /// SEC-1, SEC-5: an allowed name is allowed from where its kind usually comes from, and nothing else in the file with it;
    /// a blocked version is found though the dependency was there.
    #[test]
    fn an_allowed_name_lets_nothing_else_in() {
        let rules = |text: &str| Authority::new(&[(Layer::Project, text)]).expect("valid policies");
        let allowed = rules(
            "@id(\"new-dependency\") @reason(\"known ones\")\npermit (principal is Agent, action == Action::\"add_dependency\", resource is Repository) when { context.name == \"serde\" };",
        );
        let blocked = rules(
            "@id(\"blocked\") @reason(\"it broke once\")\nforbid (principal is Agent, action == Action::\"add_dependency\", resource is Repository) when { context.version like \"1*\" };",
        );
        let found =
            |authority: &Authority, path: &str, before: &str, after: &str| -> Vec<(FindingKind, Severity)> {
                let changes = [change(path, before, after)];
                let found = dependencies(authority, "acme/thing", &supply(&changes), &changes).into_iter();
                found.map(|finding| (finding.kind, finding.severity)).collect()
            };
        let (new, changed) = (FindingKind::NewDependency, FindingKind::DependencyChange);
        let before = "[package]\nname = \"a\"\n";
        let plain = format!("{before}[dependencies]\nserde = \"1\"\n");
        assert_eq!(found(&allowed, "Cargo.toml", before, &plain), []);
        let elsewhere =
            format!("{before}[dependencies]\nserde = {{ git = \"https://evil.example/serde\" }}\n");
        assert_eq!(
            found(&allowed, "Cargo.toml", before, &elsewhere),
            [(new, Severity::NeedsApproval)]
        );
        let beside = format!("{plain}[profile.test]\nopt-level = 3\n");
        assert_eq!(
            found(&allowed, "Cargo.toml", before, &beside),
            [(changed, Severity::NeedsApproval)]
        );
        let newer = plain.replace("\"1\"", "\"2\"");
        assert_eq!(
            found(&blocked, "Cargo.toml", &newer, &plain),
            [(changed, Severity::Violation)]
        );
    }

    /// SEC-1: what a policy says of a path counts for what is pushed, whichever tool or command wrote it; and what it allows of
    /// the forge's settings, or an override let through, is for a person to approve.
    #[test]
    fn a_policy_about_a_path_counts_for_what_is_pushed() {
        let rules = |text: &str| Authority::new(&[(Layer::Project, text)]).expect("valid policies");
        let found = |authority: &Authority, reliefs: &[Relief], change: Change| -> Vec<String> {
            let diff = diff(vec![change], vec![]);
            let mut findings = content(&inspector(), &test_command(), &diff);
            paths(authority, reliefs, &diff.changes, &mut findings);
            findings
                .into_iter()
                .map(|finding| format!("{:?} {finding}", finding.severity))
                .collect()
        };
        let deploy = rules(
            "@id(\"no-deploy\") @reason(\"people deploy\")\nforbid (principal is Agent, action in [Action::\"create_file\", Action::\"str_replace\"], resource is Worktree) when { resource.path like \"deploy/*\" };",
        );
        let said = "Violation Deploy/prod.yml: path that agents may not change: no-deploy: people deploy";
        assert_eq!(
            found(&deploy, &[], change("Deploy/prod.yml", "", "a: 1\n")),
            [said]
        );
        assert_eq!(
            found(&deploy, &[], change("Deploy/prod.yml", "a: 1\n", "")),
            [said]
        );
        assert!(found(&deploy, &[], change("src/prod.yml", "", "a: 1\n")).is_empty());

        let shipped = Authority::shipped();
        let workflow = || change(".github/workflows/ci.yml", "", "on: push\n");
        let refused = "Violation .github/workflows/ci.yml: path that agents may not change";
        assert_eq!(found(&shipped, &[], workflow()), [refused]);
        let mut relief = Relief {
            number: 1,
            scope: ReliefScope {
                policy: "forge-settings".to_owned(),
                role: Role::Implementer,
                tool: "create_file".to_owned(),
                target: "worktree:.github/workflows/ci.yml".to_owned(),
            },
            by: OperatorName::parse("ann").expect("a name"),
            justification: "the owner asked for it".to_owned(),
            until: Timestamp(1),
            revoked_by: None,
        };
        assert_eq!(
            found(&shipped, std::slice::from_ref(&relief), workflow()),
            [
                "NeedsApproval .github/workflows/ci.yml: path that agents may not change: forge-settings: override 1 by \
              ann: the owner asked for it"
            ]
        );
        relief.revoked_by = Some(relief.by.clone());
        assert_eq!(found(&shipped, &[relief], workflow()), [refused]);
    }

    /// A change of very many paths that agents may not change.
    fn many_workflows() -> Diff {
        let path = |n: usize| format!(".github/workflows/{n:05}.yml");
        let changes = (0..20_000).map(|n| change(&path(n), "", "on: push\n"));
        diff(changes.collect(), vec![])
    }

    /// SEC-1, DEP-3: hostile: time that grows with the square of the number of paths would take minutes here.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
    fn many_forbidden_paths_take_no_longer_than_as_many_others() {
        let diff = many_workflows();
        let shipped = Authority::shipped();
        let forbidden = diff.changes.iter().map(|change| {
            let kind = FindingKind::ForbiddenPath;
            Finding::of_path(kind, change.path.clone(), Severity::Violation)
        });
        let mut findings: Vec<Finding> = forbidden.collect();
        let expected = findings.clone();
        let started = std::time::Instant::now();
        paths(&shipped, &[], &diff.changes, &mut findings);
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
        assert_eq!(findings, expected, "each is told of once");
    }

    /// DEP-3: who judges a large change keeps nobody from renewing its lease.
    #[tokio::test]
    async fn a_large_change_is_judged_aside() {
        let judge = Judge {
            inspector: Arc::new(inspector()),
            authority: Authority::shipped(),
            reliefs: vec![],
            test_command: test_command(),
            repo: "acme/thing".to_owned(),
        };
        let diff = Diff {
            rendered: "+a\n".repeat(400_000),
            ..diff(vec![change("a.txt", "", "a\n")], vec![])
        };
        let mut judging = std::pin::pin!(judged_aside(judge, diff.clone()));
        let at_once = futures_util::FutureExt::now_or_never(judging.as_mut());
        assert!(at_once.is_none(), "it kept the thread that asked");
        let (judged, judgement) = judging.await.expect("it is judged");
        assert_eq!((judged, judgement.findings), (diff, vec![]));
    }

    /// SEC-1: a push and a pull request are Conductor's by a policy, and another one takes them away or asks first.
    #[test]
    fn a_policy_decides_what_leaves() {
        let rules = |text: &str| Authority::new(&[(Layer::Project, text)]).expect("valid policies");
        let found = |authority: &Authority| -> Vec<(Severity, String)> {
            let found = proposing(authority, "acme/thing").into_iter();
            found
                .map(|finding| (finding.severity, finding.to_string()))
                .collect()
        };
        assert!(found(&Authority::shipped()).is_empty());
        let frozen = rules(
            "@id(\"frozen\") @reason(\"until Monday\")\nforbid (principal, action == Action::\"push\", resource) when { resource.name == \"acme/thing\" };",
        );
        assert_eq!(
            found(&frozen),
            [(
                Severity::Violation,
                "policy frozen: decides about what leaves: push: until Monday".to_owned()
            )]
        );
        assert_eq!(proposing(&frozen, "acme/other"), []);
        let asks = rules(
            "@id(\"conductor-proposes\") @reason(\"a person looks\") @decision(\"require_approval\")\npermit (principal is Orchestrator, action in [Action::\"push\", Action::\"open_pull_request\"], resource is Repository);",
        );
        let severities: Vec<Severity> = found(&asks).into_iter().map(|(severity, _)| severity).collect();
        assert_eq!(severities, [Severity::NeedsApproval; 2]);
    }

    /// S-47, S-49: what is pushed and hidden from whoever approves it is told, and refused where whole lines are; what goes, or
    /// stood there before, is no part of what is approved.
    #[test]
    fn what_redaction_hides_of_a_change_is_told() {
        let told = |rendered: &str| -> Vec<String> {
            let found = unshown(&inspector(), rendered, "").into_iter();
            found
                .map(|finding| format!("{:?} {finding}", finding.severity))
                .collect()
        };
        let head = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
        let foot = ["-----END ", "PRIVATE KEY-----"].concat();
        let header = "changed a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,4 @@\n";
        let refused = |lines: usize| {
            format!(
                "Violation the change: not shown whole: {lines} lines are hidden, because a key seems to stand in them"
            )
        };
        let evil = format!("{header} fn a() {{}}\n+// {head}\n+fn evil() {{}}\n+fn worse() {{}}\n");
        assert_eq!(told(&evil), [refused(3)]);
        let between = format!("{header}+// {head}\n+fn evil() {{}}\n+// {foot}\n+fn seen() {{}}\n");
        assert_eq!(told(&between), [refused(3)]);
        // What stands in one file hides the next one in the text that is shown.
        let next = format!(
            "{header}-// {head}\nadded file b.rs\n--- /dev/null\n+++ b/b.rs\n@@ -0,0 +1,1 @@\n+fn b() {{}}\n"
        );
        assert_eq!(told(&next), [refused(4)]);
        let removed = format!("{header}-{head}\n-MIIE\n-{foot}\n fn a() {{}}\n+fn b() {{}}\n");
        assert_eq!(told(&removed), Vec::<String>::new());
        assert_eq!(
            told(&format!(
                "{header}-password = 'oldsesame'\n password = 'opensesame'\n+password = 'opensesame'\n"
            )),
            [
                "NeedsApproval the change: not shown whole: 1 lines are hidden in part, because a secret seems to stand there"
            ]
        );
        assert_eq!(told(&format!("{header}+fn plain() {{}}\n")), Vec::<String>::new());
    }

    /// S-47, S-49, SEC-5: hostile: names that make a key of the list of dependencies, and of nothing else, hide no name between
    /// them.
    #[test]
    fn what_redaction_hides_of_the_dependencies_is_told() {
        let judge = Judge {
            inspector: Arc::new(inspector()),
            authority: Authority::shipped(),
            reliefs: vec![],
            test_command: test_command(),
            repo: "acme/thing".to_owned(),
        };
        let unshown = |names: [&str; 3]| -> Vec<String> {
            let packages = ["a", "b", "c"].iter().zip(names).map(|(folder, name)| {
                let manifest = format!("{{\"dependencies\": {{\"{name}\": \"1\"}}}}");
                change(&format!("{folder}/package.json"), "", &manifest)
            });
            let judgement = judge.judge(&diff(packages.collect(), vec![]));
            assert_eq!(judgement.dependencies.lines().count(), 3);
            let found = judgement.findings.into_iter();
            let found = found.filter(|finding| finding.kind == FindingKind::Unshown);
            found
                .map(|finding| format!("{:?} {finding}", finding.severity))
                .collect()
        };
        // Only who reads the manifest, and not who reads its text, sees the first letter of these.
        let head = ["\\u002d----BEGIN ", "PRIVATE KEY-----"].concat();
        let foot = ["\\u002d----END ", "PRIVATE KEY-----"].concat();
        let refused = "Violation the change: not shown whole: in the list of dependencies: 3 lines are hidden, because a key seems to stand in them";
        assert_eq!(unshown([&head, "evil", &foot]), [refused]);
        assert_eq!(unshown([&head, "evil", "worse"]), [refused]);
        assert_eq!(
            unshown(["usual", "password=\\u0063orrecthorse", "more"]),
            [
                "NeedsApproval the change: not shown whole: in the list of dependencies: 1 lines are hidden in part, because a secret seems to stand there"
            ]
        );
        assert_eq!(unshown(["usual", "plain", "more"]), [""; 0]);
    }

    /// SEC-4: the head of a key hides no other secret, in an earlier commit either.
    #[test]
    fn the_head_of_a_key_hides_no_secret() {
        let head = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
        let text = format!("// {head}\nkey = \"{}\"\n", token());
        assert_eq!(
            found(&diff(vec![change("a.rs", "", &text)], vec![])),
            [
                "ask a.rs:1: secret: private-key",
                "stop a.rs:2: secret: github-token"
            ]
        );
        assert_eq!(
            found(&diff(vec![], vec![change("a.rs", "", &text)])),
            [
                "ask a.rs:1: secret: in an earlier commit of the branch: private-key",
                "stop a.rs:2: secret: in an earlier commit of the branch: github-token"
            ]
        );
        assert_eq!(
            found(&diff(vec![change("a.rs", &text, &text)], vec![])),
            Vec::<String>::new()
        );
    }

    /// S-49: what nobody could judge is refused as a whole, and the worst of it is named.
    #[test]
    fn more_findings_than_a_person_can_judge_stop_the_run() {
        let long = (0..=MOST_FINDINGS).fold(String::new(), |text, n| text + &format!("{n}\u{200b}\n"));
        let secret = format!("key = \"{}\"\n", token());
        let found = found(&diff(
            vec![change("a.txt", "", &long), change("z.py", "", &secret)],
            vec![],
        ));
        assert_eq!(found.len(), MOST_FINDINGS + 1);
        assert_eq!(found[0], "stop z.py:1: secret: github-token");
        assert_eq!(
            found[MOST_FINDINGS],
            "stop the change: too many findings: 202, the limit is 200"
        );
    }

    /// SEC-4: hostile: what does not count of an earlier commit hides no secret that stands behind it, however much there is;
    /// where nobody looks further for what does count, that is the finding.
    #[test]
    fn what_leaves_uncounted_hides_nothing_behind_it() {
        let secret = format!("key = \"{}\"\n", token());
        let behind = |before: String| {
            let passing = vec![change("a.txt", "", &before), change("z.py", "", &secret)];
            found(&diff(vec![], passing))
        };
        let whence = "in an earlier commit of the branch";
        assert_eq!(
            behind("\u{200b}\n".repeat(100 * MOST_FINDINGS)),
            [format!("stop z.py:1: secret: {whence}: github-token")]
        );
        let many = behind(secret.repeat(100 * MOST_FINDINGS));
        assert_eq!(
            many[0],
            format!(
                "stop the change: too many findings: {whence}: more than 2000, so that the rest was not looked at"
            )
        );
    }
}
