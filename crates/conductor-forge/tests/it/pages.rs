//! Pages for people, with hostile text on them.

use crate::rig::{REPO, Rig};

/// GH-8, UI-5: what people wrote is text.
#[tokio::test]
async fn a_page_shows_hostile_text_as_text() {
    let rig = Rig::start().await;
    let hostile = "<script>alert('1')</script>\"&";
    let number = rig.alice.open_issue(REPO, hostile, hostile).unwrap();
    rig.alice.comment(REPO, number, hostile).unwrap();
    let page = rig.get(&format!("/{REPO}/issues/{number}"), "").await;
    let html = page.body.as_str().unwrap();
    assert!(
        !html.contains("<script") && html.matches("&lt;script&gt;alert(&#39;1&#39;)").count() >= 3,
        "{html}"
    );
    assert_eq!(
        page.header("content-security-policy"),
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(rig.get(&format!("/{REPO}/issues/99"), "").await.status, 404);
}
