//! Puts issues on project boards and sets their fields.
//!
//! It knows the rules that GitHub keeps, not how a board is shown.

use crate::act::issue;
use crate::change::Change;
use crate::refusal::Refusal;
use crate::state::{Board, BoardItem};

pub(crate) fn find<'a>(boards: &'a [Board], owner: &str, number: u32) -> Result<&'a Board, Refusal> {
    boards
        .iter()
        .find(|board| board.owner.eq_ignore_ascii_case(owner) && board.number == number)
        .ok_or_else(Refusal::not_found)
}

fn find_mut<'a>(change: &'a mut Change<'_>, owner: &str, number: u32) -> Result<&'a mut Board, Refusal> {
    change
        .state
        .boards
        .iter_mut()
        .find(|board| board.owner.eq_ignore_ascii_case(owner) && board.number == number)
        .ok_or_else(Refusal::not_found)
}

/// Puts an issue on a board; one that is there already is found.
pub(crate) fn add(
    change: &mut Change<'_>,
    owner: &str,
    number: u32,
    repo: u64,
    issue_number: u64,
) -> Result<BoardItem, Refusal> {
    issue::find(change.repo(repo)?, issue_number)?;
    let (id, now) = (change.state.mint_id(), change.now);
    let board = find_mut(change, owner, number)?;
    let known = board
        .items
        .iter()
        .find(|item| item.repo == repo && item.issue == issue_number);
    if let Some(known) = known {
        return Ok(known.clone());
    }
    let item = BoardItem {
        id,
        repo,
        issue: issue_number,
        values: std::collections::BTreeMap::new(),
        created_at: now,
        updated_at: now,
    };
    board.items.push(item.clone());
    Ok(item)
}

/// Sets or clears fields of an item; a field that the board does not have is refused with the rest untouched.
pub(crate) fn set(
    change: &mut Change<'_>,
    owner: &str,
    number: u32,
    item: u64,
    values: &[(u64, Option<String>)],
) -> Result<BoardItem, Refusal> {
    let now = change.now;
    let board = find_mut(change, owner, number)?;
    if values
        .iter()
        .any(|(field, _)| board.fields.iter().all(|known| known.id != *field))
    {
        return Err(Refusal::invalid("ProjectV2Item", "fields", "no such field"));
    }
    let item = board
        .items
        .iter_mut()
        .find(|known| known.id == item)
        .ok_or_else(Refusal::not_found)?;
    for (field, value) in values {
        match value {
            Some(value) => item.values.insert(*field, value.clone()),
            None => item.values.remove(field),
        };
    }
    item.updated_at = now;
    Ok(item.clone())
}
