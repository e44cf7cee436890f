//! Tests of tokens that are for one project: the others are not there for them (SEC-7).

use conductor_domain::digest::Digest;
use conductor_domain::id::{ProjectId, RepoId, TokenId};
use conductor_domain::staff::{Rank, Token};
use conductor_domain::time::Timestamp;

use super::{api, asked, bearer, name, path_of, staffed, status_of};
use crate::fake::{Fake, TOKEN, row};
use crate::guard::Reach;
use crate::operation::OPERATIONS;

/// Two projects with a repository and a run each, and the token `narrow` for the first.
fn two_projects() -> Fake {
    let fake = staffed();
    {
        let mut world = fake.world();
        let (own, other) = ["p", "q"].map(|id| ProjectId::parse(id).expect("a slug")).into();
        world.instance.projects.push(ProjectId::clone(&other));
        let mut registration = world.instance.repos[&RepoId(7)].clone();
        registration.project = other;
        registration.repo.id = RepoId(8);
        registration.repo.name = "other".into();
        world.instance.repos.insert(RepoId(8), registration);
        let mut foreign = row("r-2", 2, None);
        foreign.project = "q".into();
        foreign.needs_human = true;
        world.rows.push(foreign);
        let token = Token {
            operator: name("admin"),
            rank: Rank::Admin,
            hash: Digest::of(b"narrow"),
            expires_at: Timestamp(i64::MAX),
            project: Some(own),
        };
        let id = TokenId::parse("narrow").expect("a name");
        world.instance.staff.tokens.insert(id, token);
    }
    fake
}

/// SEC-7: of every address the table says what it reaches; another project's run is not there for a project's token, whatever
/// its rank, and what concerns the whole instance is refused. An address that forgets to say so is refused, too.
#[tokio::test]
async fn a_token_of_one_project_reaches_nothing_of_another() {
    let fake = two_projects();
    let router = fake.router();
    for operation in OPERATIONS {
        let own = path_of(operation.path);
        let ask = async |path: &str| api(&router, "narrow", operation.method, path, "not json").await;
        // What is answered may be a stream without end.
        let status = async |token: &str| {
            let (path, authorization) = (format!("/api/v1{own}"), bearer(token));
            let headers = [("authorization", authorization.as_str())];
            status_of(&router, asked(operation.method, &path, &headers, "not json")).await
        };
        match operation.reach() {
            Reach::Asker => assert_ne!(status("narrow").await, 403, "{}", operation.name),
            Reach::Run => {
                assert_eq!(status("narrow").await, status(TOKEN).await, "{}", operation.name);
                let foreign = ask(&own.replace("r-1", "r-2")).await;
                let missing = ask(&own.replace("r-1", "r-9")).await;
                assert_eq!(
                    (foreign.status, foreign.text),
                    (404, missing.text),
                    "{}",
                    operation.name
                );
            }
            Reach::Instance => {
                let refused = ask(&own).await;
                let code = refused.json()["code"].clone();
                assert_eq!(
                    (refused.status, code),
                    (403, "CDR0331".into()),
                    "{}",
                    operation.name
                );
            }
        }
    }
    assert_eq!(fake.world().submitted, []);
}

/// SEC-7: lists hold what is of the token's project, and a run of another's repository does not begin.
#[tokio::test]
async fn what_a_token_of_one_project_lists_and_starts_is_of_that_project() {
    let fake = two_projects();
    let router = fake.router();
    let runs = async |token: &str, path: &str| -> Vec<String> {
        let seen = api(&router, token, "GET", path, "").await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        let key = if path == "/approvals" { "waiting" } else { "runs" };
        let list = seen.json()[key].as_array().cloned().expect("a list");
        let id = |run: &serde_json::Value| {
            run["id"]
                .as_str()
                .or(run["run"]["id"].as_str())
                .map(str::to_owned)
        };
        list.iter().map(|run| id(run).expect("an id")).collect()
    };
    assert_eq!(runs(TOKEN, "/runs").await.len(), 2);
    assert_eq!(runs(TOKEN, "/runs?project=q").await, ["r-2"]);
    assert_eq!(runs(TOKEN, "/approvals").await, ["r-2"]);
    assert_eq!(runs("narrow", "/runs").await, ["r-1"]);
    assert_eq!(runs("narrow", "/runs?project=p").await, ["r-1"]);
    assert!(runs("narrow", "/runs?project=q").await.is_empty());
    assert!(runs("narrow", "/runs?project=No%20name").await.is_empty());
    assert!(runs("narrow", "/approvals").await.is_empty());
    let foreign = api(
        &router,
        "narrow",
        "POST",
        "/runs",
        r#"{"repo":"o/other","issue":1}"#,
    )
    .await;
    assert_eq!(
        (foreign.status, &foreign.json()["code"]),
        (404, &"CDR0305".into())
    );
    assert_eq!(fake.world().submitted, []);
    let known = api(&router, TOKEN, "POST", "/runs", r#"{"repo":"o/other","issue":1}"#).await;
    assert_eq!(known.status, 201, "{}", known.text);
}
