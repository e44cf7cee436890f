//! Inspects the exact commit that is to be pushed (SEC-4, S-10, S-11).
//!
//! Whether a path is outside the approved plan is not decided here: this module does not know the plan.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::diff::{Finding, FindingKind, Inspection, Severity};
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_port::workspace::Change;

use super::Performance;

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
    let rendered = performance.keep(ArtifactKind::Diff, &diff.rendered).await?;
    Ok(Report::DiffInspected {
        inspection: Inspection {
            digest: diff.digest,
            files: diff.changes.iter().map(|change| change.path.clone()).collect(),
            findings: diff.changes.iter().flat_map(findings).collect(),
            rendered,
        },
    })
}

fn findings(change: &Change) -> Vec<Finding> {
    let forbidden = is_forbidden(&change.path).then_some(FindingKind::ForbiddenPath);
    let mut kinds: Vec<FindingKind> = change.findings.iter().copied().chain(forbidden).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
        .into_iter()
        .map(|kind| Finding {
            kind,
            path: change.path.clone(),
            severity: severity(kind),
        })
        .collect()
}

fn severity(kind: FindingKind) -> Severity {
    match kind {
        FindingKind::ForbiddenPath => Severity::Violation,
        FindingKind::OutsidePlan
        | FindingKind::Gitlink
        | FindingKind::GitSettings
        | FindingKind::EscapingSymlink
        | FindingKind::CollidingName => Severity::NeedsApproval,
    }
}

/// Tells whether the path changes what runs at the forge or who must review it; compared without case, since the
/// forge and some file systems do so.
fn is_forbidden(path: &str) -> bool {
    let path = path.to_lowercase();
    path.starts_with(".github/workflows/")
        || path == ".github/workflows"
        || ["codeowners", ".github/codeowners", "docs/codeowners"].contains(&path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-4, S-11.
    #[test]
    fn what_changes_the_forge_stops_the_run_and_what_changes_git_asks_a_human() {
        for (path, kinds, expected) in [
            (
                ".github/workflows/ci.yml",
                vec![],
                vec![(FindingKind::ForbiddenPath, Severity::Violation)],
            ),
            (
                ".GitHub/Workflows/ci.yml",
                vec![],
                vec![(FindingKind::ForbiddenPath, Severity::Violation)],
            ),
            (
                "CODEOWNERS",
                vec![FindingKind::ForbiddenPath],
                vec![(FindingKind::ForbiddenPath, Severity::Violation)],
            ),
            (
                "docs/CODEOWNERS",
                vec![],
                vec![(FindingKind::ForbiddenPath, Severity::Violation)],
            ),
            (".github/ISSUE_TEMPLATE.md", vec![], vec![]),
            ("src/codeowners", vec![], vec![]),
            (
                "a",
                vec![FindingKind::Gitlink, FindingKind::EscapingSymlink],
                vec![
                    (FindingKind::Gitlink, Severity::NeedsApproval),
                    (FindingKind::EscapingSymlink, Severity::NeedsApproval),
                ],
            ),
        ] {
            let found = findings(&Change {
                path: path.into(),
                findings: kinds,
            });
            let expected: Vec<Finding> = expected
                .into_iter()
                .map(|(kind, severity)| Finding {
                    kind,
                    path: path.into(),
                    severity,
                })
                .collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
