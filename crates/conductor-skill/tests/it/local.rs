//! The contract on directories of this machine, by copy and by link, and what only they can show.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use conductor_contract::target::TargetSubject;
use conductor_port::target::{Changed, Found, Mode, Placement, Removed, TargetFault};
use conductor_skill::local::LocalAdapter;

use crate::kit;

fn subject(mode: Mode) -> TargetSubject {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = dir.path().join("store");
    fs::create_dir(&store).expect("made");
    TargetSubject {
        adapter: Arc::new(LocalAdapter::new(Some(dir.path().join("home/u")), store.clone())),
        root: dir.path().join("home/u/.agent/skills"),
        sources: store,
        mode,
        guard: Box::new(dir),
    }
}

mod by_copy {
    async fn subject() -> conductor_contract::target::TargetSubject {
        super::subject(conductor_port::target::Mode::Copy)
    }
    conductor_contract::target_contract!(super::by_copy::subject);
}

mod by_link {
    async fn subject() -> conductor_contract::target::TargetSubject {
        super::subject(conductor_port::target::Mode::Symlink)
    }
    conductor_contract::target_contract!(super::by_link::subject);
}

/// SKILL-2: link and copy take each other's place, and a link whose end is gone is mended.
#[tokio::test]
async fn a_skill_changes_from_link_to_copy_and_back_and_a_broken_link_is_mended() {
    let subject = subject(Mode::Copy);
    let source = kit::skill(&subject.sources, "alpha", "one");
    let place = Placement::new(&subject.root, "alpha").expect("a place");
    for mode in [Mode::Copy, Mode::Symlink, Mode::Copy, Mode::Symlink] {
        let installed = subject
            .adapter
            .install(&source, &place, mode, Changed::Keep)
            .await
            .expect("installed");
        assert_eq!(installed.mode, mode);
        assert_eq!(place.path().is_symlink(), mode == Mode::Symlink);
        assert_eq!(fs::read_dir(&subject.root).expect("listed").count(), 1);
    }
    fs::remove_dir_all(&source).expect("removed");
    let found = subject
        .adapter
        .inspect(std::slice::from_ref(&place))
        .await
        .expect("answers");
    assert!(matches!(found[0], Found::Broken { .. }), "{found:?}");
    let source = kit::skill(&subject.sources, "alpha", "two");
    subject
        .adapter
        .install(&source, &place, Mode::Copy, Changed::Keep)
        .await
        .expect("mended");
    assert!(
        fs::read_to_string(place.path().join("SKILL.md"))
            .expect("read")
            .contains("two")
    );
}

/// A link of somebody else stays, wherever it leads.
#[tokio::test]
async fn a_link_that_leads_elsewhere_is_foreign() {
    let subject = subject(Mode::Symlink);
    let source = kit::skill(&subject.sources, "alpha", "one");
    fs::create_dir_all(&subject.root).expect("made");
    for to in ["/nowhere", "/usr"] {
        let place = Placement::new(&subject.root, "alpha").expect("a place");
        std::os::unix::fs::symlink(to, place.path()).expect("linked");
        let put = subject
            .adapter
            .install(&source, &place, Mode::Copy, Changed::Discard)
            .await;
        assert!(matches!(put, Err(TargetFault::Foreign { .. })), "{to}: {put:?}");
        let taken = subject.adapter.uninstall(&place, Changed::Discard).await;
        assert!(
            matches!(taken, Err(TargetFault::Foreign { .. })),
            "{to}: {taken:?}"
        );
        fs::remove_file(place.path()).expect("removed");
    }
}

/// The file system's refusals are told with what to do, and leave the old version where it was.
#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named() {
    let subject = subject(Mode::Copy);
    let source = kit::skill(&subject.sources, "alpha", "one");
    let file = subject.root.parent().expect("a parent").to_owned();
    kit::write(&file, "a file where a directory should be");
    let place = Placement::new(&subject.root, "alpha").expect("a place");
    let put = subject
        .adapter
        .install(&source, &place, Mode::Copy, Changed::Keep)
        .await;
    let Err(TargetFault::Failed { what, hint }) = put else {
        panic!("{put:?}");
    };
    assert!(
        what.contains(".agent") && hint.contains("move the file away"),
        "{what} / {hint}"
    );
}

/// Executable bits survive, and modes beyond them do not count as a change.
#[tokio::test]
async fn only_the_executable_bit_counts_as_a_mode() {
    let subject = subject(Mode::Copy);
    let source = kit::skill(&subject.sources, "alpha", "one");
    kit::program(&source.join("run"), "#!/bin/sh\n");
    let place = Placement::new(&subject.root, "alpha").expect("a place");
    let installed = subject
        .adapter
        .install(&source, &place, Mode::Copy, Changed::Keep)
        .await
        .expect("installed");
    let set = |mode| {
        fs::set_permissions(place.path().join("run"), fs::Permissions::from_mode(mode)).expect("mode set");
    };
    let actual = async || match subject
        .adapter
        .inspect(std::slice::from_ref(&place))
        .await
        .expect("answers")
        .remove(0)
    {
        Found::Managed { actual, .. } => actual,
        other @ (Found::Absent | Found::Foreign { .. } | Found::Broken { .. }) => panic!("{other:?}"),
    };
    set(0o700);
    assert_eq!(actual().await, installed.digest);
    set(0o644);
    assert_ne!(actual().await, installed.digest);
    let taken = subject.adapter.uninstall(&place, Changed::Discard).await;
    assert_eq!(taken, Ok(Removed::Gone));
}
