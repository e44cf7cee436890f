//! Answers calls about the project boards of an organisation.
//!
//! The rules are in `act::board`; here requests become acts and records become answers.

use axum::extract::Path;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::Call;
use crate::act::board;
use crate::answer::{self, Answer};
use crate::refusal::Refusal;
use crate::state::{Board, BoardItem, Level, Scope};
use crate::view::View;

type BoardPath = Path<(String, u32)>;
type ItemPath = Path<(String, u32, u64)>;

#[derive(Deserialize)]
struct Added {
    #[serde(rename = "type")]
    kind: String,
    owner: String,
    repo: String,
    number: u64,
}

#[derive(Deserialize)]
struct Edited {
    fields: Vec<Value>,
}

#[derive(Deserialize)]
struct Field {
    id: u64,
    value: Option<String>,
}

pub(crate) async fn fields(call: Call, Path((owner, number)): BoardPath) -> Answer {
    let board = board_for(&call, &owner, number, Level::Read)?;
    let items = call.site.look(|state| {
        let view = View::new(state, &call.root);
        board
            .fields
            .iter()
            .map(|field| view.board_field(&board, field))
            .collect()
    });
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn items(call: Call, Path((owner, number)): BoardPath) -> Answer {
    let board = board_for(&call, &owner, number, Level::Read)?;
    let items = board
        .items
        .iter()
        .map(|item| shown(&call, &board, item))
        .collect::<Result<_, _>>()?;
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn add(call: Call, Path((owner, number)): BoardPath, body: Bytes) -> Answer {
    let board = board_for(&call, &owner, number, Level::Write)?;
    let wish: Added = answer::parse(&body)?;
    if wish.kind != "Issue" {
        return Err(Refusal::invalid(
            "ProjectV2Item",
            "type",
            "only issues are kept here",
        ));
    }
    let repo = call.repo(&wish.owner, &wish.repo, Scope::Issues, Level::Read)?;
    let item = call
        .site
        .change(|change| board::add(change, &owner, number, repo.id, wish.number))?;
    answer::created(&shown(&call, &board, &item)?)
}

pub(crate) async fn edit(call: Call, Path((owner, number, item)): ItemPath, body: Bytes) -> Answer {
    let board = board_for(&call, &owner, number, Level::Write)?;
    let Edited { fields } = answer::parse(&body)?;
    let values = fields
        .into_iter()
        .map(|field| {
            // `value` has to be there: what is left out is not the same as what is cleared.
            if field.get("value").is_none() {
                return Err(Refusal::missing("ProjectV2Item", "value"));
            }
            let Field { id, value } = serde_json::from_value(field)
                .map_err(|error| Refusal::Unprocessable(format!("Invalid request.\n\n{error}")))?;
            Ok((id, value))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let item = call
        .site
        .change(|change| board::set(change, &owner, number, item, &values))?;
    answer::ok(&shown(&call, &board, &item)?)
}

/// Finds a board for a caller whose installation may do this with it.
fn board_for(call: &Call, owner: &str, number: u32, level: Level) -> Result<Board, Refusal> {
    call.site.look(|state| {
        call.caller.may_boards(state, owner, level)?;
        board::find(&state.boards, owner, number).cloned()
    })
}

fn shown(call: &Call, board: &Board, item: &BoardItem) -> Result<Value, Refusal> {
    call.site.look(|state| {
        let repo = state.repos.get(&item.repo).ok_or_else(Refusal::not_found)?;
        let issue = repo.issues.get(&item.issue).ok_or_else(Refusal::not_found)?;
        Ok(View::new(state, &call.root).board_item(board, item, repo, issue))
    })
}
