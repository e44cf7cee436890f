//! Fields on a project board: set once, found again, and never made up.

use std::collections::BTreeMap;

use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::id::IssueNumber;
use conductor_forge::state::{Level, Scope};
use conductor_forge::{Fault, When};
use conductor_port::forge::Forge as _;
use reqwest::Method;

use crate::site::{REPO, Site, is_permanent, transient};

fn fields(pairs: &[(&str, &str)]) -> OwnFields {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    OwnFields::new(pairs.iter().map(owned).collect()).unwrap()
}

/// A site with an issue, and a board with fields of ours and of others.
async fn site() -> (Site, IssueNumber, BoardNumber) {
    let site = Site::start().await;
    let issue = site.alice.open_issue(REPO, "Oil it", "please").unwrap();
    let kinds = [
        ("Status", "single_select"),
        ("Conductor note", "text"),
        ("Conductor count", "number"),
    ];
    let board = site.forge.create_board("acme", &kinds).unwrap();
    (site, IssueNumber(issue), BoardNumber(board))
}

/// TOOL-3, RUN-4: an issue is put on the board once, and a repeat after a lost answer finds it there.
#[tokio::test]
async fn fields_are_set_and_a_repeat_changes_nothing() {
    let (site, issue, board) = site().await;
    let path = format!("/orgs/acme/projectsV2/{}/items", board.0);
    let lost = Fault::Drop(When::AfterTheWrite);
    site.forge.faults().next(Method::POST, &path, lost);
    let note = fields(&[("Conductor note", "half way")]);
    let fault = site.client.update_fields(&site.repo, board, issue, &note).await;
    assert!(transient(&fault.unwrap_err()).is_some());
    for said in ["half way", "done"] {
        let note = fields(&[("Conductor note", said)]);
        site.client
            .update_fields(&site.repo, board, issue, &note)
            .await
            .unwrap();
        let values = site.forge.board_values("acme", board.0, issue.0).unwrap();
        assert_eq!(
            values,
            BTreeMap::from([("Conductor note".to_owned(), said.to_owned())])
        );
    }
    assert_eq!(site.forge.board_items("acme", board.0).unwrap(), 1);
}

/// TOOL-3: what is not there is said, and nothing is changed: no such board, no such field, a field of another kind, an
/// App without the permission.
#[tokio::test]
async fn what_the_board_does_not_have_is_refused_for_good() {
    let (site, issue, board) = site().await;
    let note = [("Conductor note", "x")];
    for (wanted, on, words) in [
        (fields(&note), BoardNumber(99), "board 99"),
        (
            fields(&[("Conductor other", "x")]),
            board,
            "has no text field `Conductor other`",
        ),
        (
            fields(&[("Conductor count", "x")]),
            board,
            "has no text field `Conductor count`",
        ),
    ] {
        let fault = site
            .client
            .update_fields(&site.repo, on, issue, &wanted)
            .await
            .unwrap_err();
        assert!(is_permanent(&fault) && fault.what.contains(words), "{fault:?}");
    }
    let few = [(Scope::Metadata, Level::Read), (Scope::Issues, Level::Write)];
    site.forge
        .set_permissions("acme", few.into_iter().collect())
        .unwrap();
    let fault = site
        .another_client()
        .update_fields(&site.repo, board, issue, &fields(&note))
        .await
        .unwrap_err();
    assert!(is_permanent(&fault), "{fault:?}");
    assert_eq!(site.forge.board_items("acme", board.0).unwrap(), 0);
}
