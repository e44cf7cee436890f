//! One function per address: take the request apart, read or submit, answer.
//!
//! Handlers decide nothing (ARCHITECTURE invariant 3). This module does not know how answers come about.

pub(crate) mod instance;
pub(crate) mod policy;
pub(crate) mod overrides;
pub(crate) mod run;
pub(crate) mod work;
pub(crate) mod bulk;
pub(crate) mod audit;
pub(crate) mod staff;

use axum::http::Uri;

use crate::error::Error;

/// Answers where nothing is.
pub(crate) async fn nothing_here(uri: Uri) -> Error {
    Error::NotFound {
        what: format!("address `{}`", uri.path()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};
    use conductor_domain::digest::Digest;
    use conductor_domain::input::{Action, Input};
    use conductor_port::blobs::Blobs;
    use tower::ServiceExt;

    use crate::fake::{Fake, request, row};

    /// S-57: what an agent wrote never opens in a browser.
    #[tokio::test]
    async fn kept_bytes_leave_as_an_attachment_that_nothing_runs() {
        let fake = Fake::with_repo();
        let kept = fake
            .put(conductor_domain::artifact::ArtifactKind::Plan, b"<script>")
            .await
            .expect("kept");
        let path = format!("/api/v1/artifacts/{}", kept.digest);
        let response = fake
            .router()
            .oneshot(request("GET", &path, ""))
            .await
            .expect("a router never fails");
        let header = |name| response.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(header(header::CONTENT_TYPE), "application/octet-stream");
        assert!(header(header::CONTENT_DISPOSITION).starts_with("attachment;"));
        assert_eq!(header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert!(header(header::CONTENT_SECURITY_POLICY).contains("sandbox"));
        let missing = format!("/api/v1/artifacts/{}", Digest::of(b"?"));
        assert_eq!(
            fake.ask(request("GET", &missing, "")).await.0,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            fake.ask(request("GET", "/api/v1/artifacts/..%2f..", "")).await.0,
            StatusCode::UNPROCESSABLE_ENTITY
        );
    }

    /// RUN-7, RUN-11: the door passes on what was asked, with the operator's name, and judges nothing.
    #[tokio::test]
    async fn an_action_is_submitted_in_the_operators_name() {
        let fake = Fake::with_repo();
        fake.world().rows.push(row("r-1", 1, None));
        let cases = [
            (r#"{"action":"pause"}"#, Action::Pause),
            (
                r#"{"action":"cancel","comment":"no"}"#,
                Action::Cancel {
                    comment: Some("no".into()),
                },
            ),
        ];
        for (body, expected) in cases {
            let (status, _) = fake.ask(request("POST", "/api/v1/runs/r-1/actions", body)).await;
            assert_eq!(status, 200, "{body}");
            let last = fake.world().submitted.pop().expect("submitted");
            let Input::Operate { by, action } = last.input else {
                panic!("{:?}", last.input)
            };
            assert_eq!((by.as_str(), action), ("ann", expected));
        }
        for (body, code) in [
            (r#"{"action":"explode"}"#, "CDR0304"),
            (r#"{"action":"approve"}"#, "CDR0304"),
            (r#"{"action":"approve","subject":"latest"}"#, "CDR0304"),
            (r#"{"action":"reprioritize","priority":0}"#, "CDR0304"),
            // An answer is to what was seen, never to whatever is open now (BEY-1, BEY-4).
            (r#"{"action":"answer","text":"x"}"#, "CDR0304"),
            (
                r#"{"action":"answer","question":"r-1.1.0","text":" "}"#,
                "CDR0110",
            ),
            (
                &format!(
                    r#"{{"action":"revise","subject":"{}","comment":" "}}"#,
                    Digest::of(b"x")
                ),
                "CDR0110",
            ),
        ] {
            let (_, problem) = fake
                .ask(request("POST", "/api/v1/runs/r-1/actions", body.to_owned()))
                .await;
            assert_eq!(problem["code"], code, "{body}");
        }
        let (status, problem) = fake
            .ask(request(
                "POST",
                "/api/v1/runs/r-9/actions",
                r#"{"action":"pause"}"#,
            ))
            .await;
        assert_eq!(
            (status.as_u16(), problem["code"].as_str()),
            (404, Some("CDR0101"))
        );
        assert_eq!(fake.world().submitted, []);
    }

    /// OWN-6, S-53: the numeric id comes from the forge, never from the request.
    #[tokio::test]
    async fn a_repository_is_registered_as_the_forge_describes_it() {
        let fake = Fake::with_repo();
        let ask = |body: &'static str| request("POST", "/api/v1/repos", body);
        let (status, repo) = fake
            .ask(ask(
                r#"{"project":"p","repo":"o/new","test_command":["make","test"]}"#,
            ))
            .await;
        assert_eq!(
            (status.as_u16(), repo["id"].as_u64(), repo["base_branch"].as_str()),
            (201, Some(9), Some("main"))
        );
        for (body, status, code) in [
            (
                r#"{"project":"p","repo":"x/y","test_command":["make"]}"#,
                404,
                "CDR0306",
            ),
            (
                r#"{"project":"nope","repo":"o/new","test_command":["make"]}"#,
                404,
                "CDR0202",
            ),
            (
                r#"{"project":"p","repo":"o/new","test_command":[]}"#,
                422,
                "CDR0204",
            ),
            (
                r#"{"project":"p","repo":"o/../x","test_command":["make"]}"#,
                422,
                "CDR0304",
            ),
            (
                r#"{"project":"P!","repo":"o/new","test_command":["make"]}"#,
                422,
                "CDR0304",
            ),
        ] {
            let (found, problem) = fake.ask(ask(body)).await;
            assert_eq!(
                (found.as_u16(), problem["code"].as_str()),
                (status, Some(code)),
                "{body}"
            );
        }
    }
}
