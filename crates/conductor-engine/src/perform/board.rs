//! Sets Conductor's own fields on a board.
//!
//! This module does not know who wished for them.

use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::fault::Fault;
use conductor_domain::id::IssueNumber;
use conductor_domain::input::Report;

use super::Performance;

/// Sets the fields. If repeated: they say the same again; a later wish is a later effect, of which one is under way at a
/// time.
pub(super) async fn update(
    performance: &Performance<'_>,
    board: BoardNumber,
    issue: IssueNumber,
    fields: &OwnFields,
) -> Result<Report, Fault> {
    let (forge, repo) = (performance.ports().forge.as_ref(), performance.repo());
    forge.update_fields(repo, board, issue, fields).await?;
    Ok(Report::FieldsUpdated)
}
