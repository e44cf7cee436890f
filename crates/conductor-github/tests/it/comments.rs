//! Comments: posted once, whatever happens on the way.

use conductor_domain::effect::CommentTarget;
use conductor_domain::id::IssueNumber;
use conductor_forge::{Fault, When};
use conductor_port::forge::Forge as _;
use reqwest::Method;

use crate::site::{REPO, Site, is_permanent, transient};

const MARKER: &str = "<!-- conductor:effect=run-1.4.0 -->";

struct Thread {
    site: Site,
    number: u64,
}

impl Thread {
    async fn start() -> Self {
        let site = Site::start().await;
        let number = site.alice.open_issue(REPO, "Widgets squeak", "").unwrap();
        Self { site, number }
    }

    async fn post(&self, text: &str, repeated: bool) -> Result<String, conductor_domain::fault::Fault> {
        let target = CommentTarget::Issue(IssueNumber(self.number));
        let body = format!("{text}\n{MARKER}\n");
        self.site
            .client
            .comment(&self.site.repo, target, &body, MARKER, repeated)
            .await
    }

    fn bodies(&self) -> Vec<String> {
        let comments = self.site.forge.comments(REPO, self.number).unwrap();
        comments.into_iter().map(|comment| comment.body).collect()
    }

    fn comments_path(&self) -> String {
        format!("/repos/{REPO}/issues/{}/comments", self.number)
    }
}

/// RUN-4, GH-5.
#[tokio::test]
async fn a_comment_is_posted_under_the_apps_own_name() {
    let thread = Thread::start().await;
    let page = thread.post("Hello", false).await.unwrap();
    let comments = thread.site.forge.comments(REPO, thread.number).unwrap();
    assert_eq!(comments.len(), 1);
    assert_eq!(comments[0].author, "conductor[bot]");
    assert_eq!(comments[0].body, format!("Hello\n{MARKER}\n"));
    let expected = format!(
        "{}/{REPO}/issues/{}#issuecomment-{}",
        thread.site.forge.base_url(),
        thread.number,
        comments[0].id
    );
    assert_eq!(page, expected);
}

/// RUN-4: the answer is lost after GitHub did it; the repeat finds it.
#[tokio::test]
async fn a_lost_answer_and_a_repeat_leave_one_comment() {
    let thread = Thread::start().await;
    for fault in [
        Fault::Drop(When::AfterTheWrite),
        Fault::Status {
            status: 502,
            when: When::AfterTheWrite,
        },
    ] {
        thread
            .site
            .forge
            .faults()
            .next(Method::POST, &thread.comments_path(), fault);
        let before = thread.bodies().len();
        let fault = thread.post("Hello", before > 0).await;
        if before == 0 {
            assert_eq!(transient(&fault.unwrap_err()).map(|it| it.0), Some(0));
        } else {
            assert!(fault.is_ok(), "the repeat found the first one and did not post");
        }
        assert_eq!(thread.bodies().len(), 1);
    }
    let page = thread.post("Hello", true).await.unwrap();
    let id = thread.site.forge.comments(REPO, thread.number).unwrap()[0].id;
    assert!(page.ends_with(&format!("#issuecomment-{id}")));
    assert_eq!(thread.bodies().len(), 1);
}

/// RUN-4: the request is lost before GitHub did it; the repeat does it.
#[tokio::test]
async fn a_lost_request_and_a_repeat_leave_one_comment() {
    let thread = Thread::start().await;
    thread.site.forge.faults().next(
        Method::POST,
        &thread.comments_path(),
        Fault::Drop(When::BeforeTheWrite),
    );
    let fault = thread.post("Hello", false).await.unwrap_err();
    assert!(transient(&fault).is_some(), "{fault:?}");
    assert_eq!(thread.bodies(), Vec::<String>::new());
    thread.post("Hello", true).await.unwrap();
    assert_eq!(thread.bodies().len(), 1);
}

/// ARCHITECTURE invariant 5: the client itself never repeats, not even an idempotent-looking failure.
#[tokio::test]
async fn one_failure_is_one_request() {
    let thread = Thread::start().await;
    let faults = thread.site.forge.faults();
    faults.next(
        Method::POST,
        &thread.comments_path(),
        Fault::Status {
            status: 503,
            when: When::BeforeTheWrite,
        },
    );
    assert!(transient(&thread.post("Hello", false).await.unwrap_err()).is_some());
    assert_eq!(
        thread.bodies(),
        Vec::<String>::new(),
        "a second request would have been answered"
    );
}

/// S-52: anyone may write our marker; only our own comment is taken for ours.
#[tokio::test]
async fn a_marker_in_someone_elses_comment_does_not_silence_us() {
    let thread = Thread::start().await;
    thread
        .site
        .alice
        .comment(REPO, thread.number, &format!("ha {MARKER}"))
        .unwrap();
    thread.post("Hello", true).await.unwrap();
    let ours = format!("Hello\n{MARKER}\n");
    assert_eq!(thread.bodies(), [format!("ha {MARKER}"), ours]);
}

/// S-52, RUN-4: an agent may know the marker of a write to come, and get it into a comment of ours.
#[tokio::test]
async fn a_comment_of_ours_that_quotes_another_marker_is_not_taken_for_that_write() {
    let thread = Thread::start().await;
    let (client, repo) = (&thread.site.client, &thread.site.repo);
    let target = CommentTarget::Issue(IssueNumber(thread.number));
    let other = "<!-- conductor:effect=run-1.3.0 -->";
    let quoting = format!("I found {MARKER}\n{MARKER}\n{other}\n");
    client
        .comment(repo, target, &quoting, other, false)
        .await
        .unwrap();
    let page = thread.post("Hello", true).await.unwrap();
    assert_eq!(thread.bodies(), [quoting.clone(), format!("Hello\n{MARKER}\n")]);
    assert_eq!(thread.post("Hello", true).await.unwrap(), page);
    assert_eq!(client.remove_repeats(repo, target, MARKER).await.unwrap(), 0);
    assert_eq!(thread.bodies(), [quoting, format!("Hello\n{MARKER}\n")]);
}

#[tokio::test]
async fn the_marker_is_found_among_the_newest_of_many_comments() {
    let thread = Thread::start().await;
    for index in 0..230 {
        thread
            .site
            .alice
            .comment(REPO, thread.number, &format!("noise {index}"))
            .unwrap();
    }
    let page = thread.post("Hello", false).await.unwrap();
    for index in 0..75 {
        thread
            .site
            .alice
            .comment(REPO, thread.number, &format!("more noise {index}"))
            .unwrap();
    }
    assert_eq!(thread.post("Hello", true).await.unwrap(), page);
    assert_eq!(thread.bodies().len(), 306);
}

/// GH-5.
#[tokio::test]
async fn a_comment_over_the_limit_is_refused_for_good() {
    let thread = Thread::start().await;
    let fault = thread.post(&"x".repeat(65_537), false).await.unwrap_err();
    assert!(is_permanent(&fault), "{fault:?}");
    assert!(
        fault.what.contains("422") && fault.what.contains("too long"),
        "{fault}"
    );
    assert_eq!(thread.bodies(), Vec::<String>::new());
}

#[tokio::test]
async fn a_text_without_its_marker_at_its_end_is_never_sent() {
    let thread = Thread::start().await;
    let target = CommentTarget::Issue(IssueNumber(thread.number));
    for text in ["Hello".to_owned(), format!("{MARKER}\nHello")] {
        let fault = thread
            .site
            .client
            .comment(&thread.site.repo, target, &text, MARKER, false)
            .await
            .unwrap_err();
        assert!(is_permanent(&fault));
    }
    assert_eq!(thread.bodies(), Vec::<String>::new());
}
