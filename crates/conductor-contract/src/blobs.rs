//! Bytes by content address (OWN-4a).
//!
//! It does not know what they mean.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_port::blobs::{KeptBytes, MAX_BLOB};

use crate::Subject;

async fn put(subject: &Subject, bytes: &[u8]) -> Artifact {
    subject
        .blobs
        .put(ArtifactKind::TestOutput, bytes)
        .await
        .expect("the bytes are kept")
}

async fn get(subject: &Subject, digest: &Digest) -> Option<Vec<u8>> {
    subject.blobs.get(digest).await.expect("the store answers")
}

pub(crate) async fn bytes_come_back_as_they_were(subject: &Subject) {
    let every_byte: Vec<u8> = (0..=255).collect();
    for bytes in [&b""[..], b"plan", b"\0\xff\xfe", &every_byte] {
        let artifact = put(subject, bytes).await;
        assert_eq!(artifact, Artifact::of(ArtifactKind::TestOutput, bytes));
        assert_eq!(get(subject, &artifact.digest).await.as_deref(), Some(bytes));
    }
}

pub(crate) async fn unknown_bytes_are_absent(subject: &Subject) {
    assert_eq!(get(subject, &Digest::of(b"never kept")).await, None);
}

pub(crate) async fn keeping_twice_changes_nothing(subject: &Subject) {
    let first = put(subject, b"plan").await;
    let again = subject
        .blobs
        .put(ArtifactKind::Plan, b"plan")
        .await
        .expect("the bytes are kept");
    assert_eq!(
        again,
        Artifact {
            kind: ArtifactKind::Plan,
            ..first.clone()
        }
    );
    assert_eq!(get(subject, &first.digest).await.as_deref(), Some(&b"plan"[..]));
}

/// OWN-4a.
pub(crate) async fn too_many_bytes_are_cut_with_a_mark(subject: &Subject) {
    let bytes = vec![b'x'; MAX_BLOB + 1];
    let artifact = put(subject, &bytes).await;
    let kept = get(subject, &artifact.digest).await.expect("the bytes are kept");
    assert!(artifact.truncated);
    assert_eq!(
        (artifact.bytes, artifact.digest),
        (kept.len() as u64, Digest::of(&kept))
    );
    assert!(kept.len() <= MAX_BLOB, "{} bytes were kept", kept.len());
    let mark = String::from_utf8_lossy(&kept[kept.len() - 100..]).into_owned();
    assert!(
        mark.ends_with("]\n") && mark.contains("[cut: ") && mark.contains(&bytes.len().to_string()),
        "{mark}"
    );
}

pub(crate) async fn a_cut_does_not_split_a_character(subject: &Subject) {
    for lead in 0..4 {
        let text = format!("{}{}", "x".repeat(lead), "👩".repeat(MAX_BLOB / 4 + 1));
        let artifact = put(subject, text.as_bytes()).await;
        let kept = get(subject, &artifact.digest).await.expect("the bytes are kept");
        assert!(String::from_utf8(kept).is_ok(), "after {lead} bytes");
    }
}

pub(crate) async fn the_most_bytes_are_kept_whole(subject: &Subject) {
    let bytes = vec![b'x'; MAX_BLOB];
    let artifact = put(subject, &bytes).await;
    assert_eq!(artifact, Artifact::of(ArtifactKind::TestOutput, &bytes));
    assert_eq!(get(subject, &artifact.digest).await, Some(bytes));
}

/// SEC-8.
pub(crate) async fn everything_kept_is_listed_by_its_address(subject: &Subject) {
    let texts = ["a", "b", "c", "d", "e"];
    for text in texts {
        let kept = subject.blobs.put(ArtifactKind::Plan, text.as_bytes()).await;
        kept.expect("the bytes are kept");
    }
    let mut listed = vec![];
    let mut after = String::new();
    loop {
        let page = subject.blobs.list(&after, 2).await.expect("the store answers");
        let Some(last) = page.last() else { break };
        after.clone_from(&last.address);
        listed.extend(page);
    }
    let mut expected: Vec<KeptBytes> = texts
        .map(|text| KeptBytes {
            address: Digest::of(text.as_bytes()).to_string(),
            bytes: text.as_bytes().to_vec(),
        })
        .into();
    expected.sort_by(|a, b| a.address.cmp(&b.address));
    assert_eq!(listed, expected);
}
