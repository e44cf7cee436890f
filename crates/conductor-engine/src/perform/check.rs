//! Writes Conductor's check run on the head commit.
//!
//! This module does not know what the check stands for.

use std::collections::BTreeMap;

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_domain::message::{CheckNote, noted};
use conductor_port::forge::NewCheck;

use super::Performance;

/// Writes the check run. If repeated: the one with this effect's id is updated to say the same.
pub(super) async fn publish(
    performance: &Performance<'_>,
    head: &CommitId,
    title: &str,
    summary: &str,
    notes: &[CheckNote],
) -> Result<Report, Fault> {
    let mut kept = BTreeMap::new();
    for CheckNote { text, .. } in notes {
        let words = String::from_utf8_lossy(&performance.kept(text).await?).into_owned();
        kept.insert(text.digest.clone(), words);
    }
    let summary = noted(summary, notes, &kept);
    let check = NewCheck {
        head: head.clone(),
        external_id: performance.effect().to_string(),
        title: performance.redact(title),
        summary: performance.redact(&summary),
        details_url: performance.spec().await?.page,
    };
    performance
        .ports()
        .forge
        .publish_check(performance.repo(), &check)
        .await?;
    Ok(Report::CheckPublished)
}
