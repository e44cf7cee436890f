//! Keeps fields of an issue on a project board of the repository's owner.
//!
//! By the REST interface of organisations' projects: a GitHub App cannot reach those of a person. It does not know what
//! the fields say.

use std::collections::BTreeMap;

use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::fault::Fault;
use conductor_domain::id::IssueNumber;
use conductor_domain::spec::RepoRef;
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::credential::{Grant, Place};
use crate::model;

/// The kind of field that holds words.
const TEXT: &str = "text";

impl Client {
    /// Sets text fields of an issue, which is put on the board first if it has to be. If repeated: nothing changes.
    pub(crate) async fn set_fields(
        &self,
        repo: &RepoRef,
        board: BoardNumber,
        issue: IssueNumber,
        fields: &OwnFields,
    ) -> Result<(), Fault> {
        let place = Place::of(repo)?;
        let values = self.values(&place, board, fields).await?;
        let item = match self.find_item(&place, board, issue).await? {
            Some(item) => item,
            None => self.add_item(&place, board, issue).await?,
        };
        let attempt = format!("set fields of {place}{issue} on board {}", board.0);
        let item = item.to_string();
        let call = self.board_call(&attempt, Method::PATCH, &place, board, &["items", &item]);
        let body = Some(json!({ "fields": values }));
        let _: model::BoardItem = self
            .read(&place, Grant::WriteBoards, Call { body, ..call })
            .await?;
        Ok(())
    }

    /// Pairs ids of fields with what they shall say; a field that is not there is made by people, not by us.
    async fn values(
        &self,
        place: &Place,
        board: BoardNumber,
        fields: &OwnFields,
    ) -> Result<Vec<Value>, Fault> {
        let attempt = format!("read the fields of board {} of {}", board.0, place.owner);
        let call = self.board_call(&attempt, Method::GET, place, board, &["fields"]);
        let known: Vec<model::BoardField> = self.read_all(place, Grant::WriteBoards, call).await?;
        let known: BTreeMap<&str, u64> = known
            .iter()
            .filter(|field| field.data_type == TEXT)
            .map(|field| (field.name.as_str(), field.id))
            .collect();
        fields
            .values()
            .iter()
            .map(|(name, value)| match known.get(name.as_str()) {
                Some(id) => Ok(json!({ "id": id, "value": value })),
                None => Err(Fault::permanent(format!(
                    "board {} of {} has no text field `{name}`",
                    board.0, place.owner
                ))),
            })
            .collect()
    }

    async fn find_item(
        &self,
        place: &Place,
        board: BoardNumber,
        issue: IssueNumber,
    ) -> Result<Option<u64>, Fault> {
        let attempt = format!("look for {place}{issue} on board {}", board.0);
        let call = self.board_call(&attempt, Method::GET, place, board, &["items"]);
        let items: Vec<model::BoardItem> = self.read_all(place, Grant::WriteBoards, call).await?;
        let end = format!("/repos/{place}").to_lowercase();
        let is_it = |content: &model::BoardContent| {
            content.number == Some(issue.0)
                && content
                    .repository_url
                    .as_deref()
                    .is_some_and(|url| url.to_lowercase().ends_with(&end))
        };
        let found = items
            .into_iter()
            .find(|item| item.content.as_ref().is_some_and(is_it));
        Ok(found.map(|item| item.id))
    }

    async fn add_item(&self, place: &Place, board: BoardNumber, issue: IssueNumber) -> Result<u64, Fault> {
        let attempt = format!("put {place}{issue} on board {}", board.0);
        let call = self.board_call(&attempt, Method::POST, place, board, &["items"]);
        let body = Some(json!({
            "type": "Issue", "owner": place.owner, "repo": place.name, "number": issue.0,
        }));
        let added: model::BoardItem = self
            .read(place, Grant::WriteBoards, Call { body, ..call })
            .await?;
        Ok(added.id)
    }

    /// Builds a call below a board of the repository's owner.
    fn board_call<'a>(
        &self,
        attempt: &'a str,
        method: Method,
        place: &Place,
        board: BoardNumber,
        path: &[&str],
    ) -> Call<'a> {
        let number = board.0.to_string();
        let segments: Vec<&str> = ["orgs", place.owner.as_str(), "projectsV2", number.as_str()]
            .into_iter()
            .chain(path.iter().copied())
            .collect();
        let query: &[(&str, &str)] = if method == Method::GET {
            &[("per_page", "100")]
        } else {
            &[]
        };
        Call {
            attempt,
            method,
            url: self.address.endpoint(&segments, query),
            body: None,
        }
    }
}
