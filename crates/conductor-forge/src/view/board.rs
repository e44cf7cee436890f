//! Shows project boards: their fields, and what stands on them.
//!
//! It does not know who may look.

use serde_json::{Value, json};

use super::{View, node_id};
use crate::state::{Board, BoardField, BoardItem, Issue, Repo};

impl View<'_> {
    pub(crate) fn board_field(&self, board: &Board, field: &BoardField) -> Value {
        json!({
            "id": field.id,
            "node_id": node_id("ProjectV2Field", field.id),
            "project_url": self.board_url(board),
            "name": field.name,
            "data_type": field.data_type,
            "created_at": board.created_at,
            "updated_at": board.created_at,
        })
    }

    pub(crate) fn board_item(&self, board: &Board, item: &BoardItem, repo: &Repo, issue: &Issue) -> Value {
        let url = self.board_url(board);
        let fields: Vec<Value> = board
            .fields
            .iter()
            .filter_map(|field| {
                let value = item.values.get(&field.id)?;
                Some(json!({ "id": field.id, "name": field.name, "data_type": field.data_type, "value": value }))
            })
            .collect();
        json!({
            "id": item.id,
            "node_id": node_id("ProjectV2Item", item.id),
            "project_url": url,
            "item_url": format!("{url}/items/{}", item.id),
            "content_type": "Issue",
            "content": self.issue(repo, issue),
            "created_at": item.created_at,
            "updated_at": item.updated_at,
            "archived_at": Value::Null,
            "fields": fields,
        })
    }

    fn board_url(&self, board: &Board) -> String {
        format!(
            "{}/orgs/{}/projectsV2/{}",
            self.root.api, board.owner, board.number
        )
    }
}
