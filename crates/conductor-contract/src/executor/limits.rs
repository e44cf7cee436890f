//! What a command may use up.

use std::time::{Duration, Instant};

use conductor_domain::testing::Ending;

use super::disk::SmallDisk;
use super::given::{
    OUTPUT, PASSED, bash, mark, open, open_with, printed, processes_with, script, spec, still_works, text,
    until_gone, within,
};
use super::{Subject, TEMPORARY};

#[allow(clippy::disallowed_methods, reason = "measures that an end comes in time")]
fn now() -> Instant {
    Instant::now()
}

/// EXEC-7: output without end, and a time-out in the middle of it.
pub(super) async fn output_without_end_is_cut_marked_and_ended(subject: &Subject) {
    let sandbox = open(subject).await;
    let begun = now();
    let result = sandbox
        .bash(within(1_000, "echo first; yes"))
        .await
        .expect("an answer");
    assert_eq!((&result.ending, result.truncated), (&Ending::TimedOut, true));
    assert!(result.output.starts_with(b"first\ny\n"));
    assert!(text(&result).contains("bytes of output left out"));
    assert!(
        result.output.len() < OUTPUT + 1024,
        "{} bytes",
        result.output.len()
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// EXEC-7: a line of 1 GiB.
pub(super) async fn a_line_of_a_gibibyte_is_carried_in_bounded_memory(subject: &Subject) {
    let sandbox = open(subject).await;
    let before = resident();
    let result = bash(sandbox.as_ref(), "head -c 1073741824 /dev/zero; printf end").await;
    assert_eq!((result.ending, result.truncated), (PASSED, true));
    assert!(result.output.ends_with(b"\0end"));
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more than before");
    sandbox.close().await.expect("it closes");
}

/// The largest that this process ever was, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.expect("the kernel tells it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// EXEC-7: the whole tree, with what became a daemon.
pub(super) async fn a_command_that_ignores_signals_is_ended_in_time(subject: &Subject) {
    let sandbox = open(subject).await;
    let mark = mark();
    let begun = now();
    let text = format!(
        "trap '' TERM INT HUP; (setsid sleep {mark} &) ; setsid bash -c 'trap \"\" TERM; sleep {mark}' & sleep {mark}"
    );
    let result = sandbox.bash(within(1_500, &text)).await.expect("an answer");
    assert_eq!(result.ending, Ending::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(20));
    until_gone(&mark).await;
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// EXEC-6, S-42: the limit is named, the tree is gone, the sandbox goes on.
pub(super) async fn a_fork_bomb_is_ended_and_named(subject: &Subject) {
    let sandbox = open(subject).await;
    let result = sandbox
        .bash(within(60_000, "bomb() { bomb | bomb & }; bomb; sleep 50"))
        .await
        .expect("an answer");
    assert_eq!(
        result.ending,
        Ending::LimitExceeded {
            limit: "processes".into()
        },
        "{}",
        text(&result)
    );
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// EXEC-6, S-42: also when the command itself survives the loss of a child.
pub(super) async fn a_memory_hog_is_ended_and_named(subject: &Subject) {
    let sandbox = open(subject).await;
    let mark = mark();
    for hog in [
        "tail /dev/zero".to_owned(),
        format!("sleep {mark} & tail /dev/zero || true; exit 0"),
    ] {
        let result = sandbox.bash(within(60_000, &hog)).await.expect("an answer");
        assert_eq!(
            result.ending,
            Ending::LimitExceeded {
                limit: "memory".into()
            },
            "{}",
            text(&result)
        );
    }
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
    assert_eq!(processes_with(&mark), 0);
}

/// S-3: what is written to a full disk fails there, and is gone with the sandbox.
pub(super) async fn a_full_disk_is_the_commands_own_trouble(subject: &Subject) {
    let sandbox = open(subject).await;
    let much = TEMPORARY * 2;
    let result = sandbox
        .bash(script(&format!("head -c {much} /dev/zero > $TMPDIR/much")))
        .await
        .expect("an answer");
    assert_eq!(result.ending, Ending::Exited { code: 1 });
    assert!(text(&result).contains("No space left"), "{}", text(&result));
    printed(sandbox.as_ref(), "rm $TMPDIR/much").await;
    sandbox.close().await.expect("it closes");
}

/// TOOL-2: a disk without room refuses the file tools in so many words; what was there stays whole, nothing half is left, and
/// with room it goes on.
pub(super) async fn a_full_disk_refuses_the_file_tools_and_keeps_what_is_there(subject: &Subject) {
    let disk = SmallDisk::mount(&subject.place);
    let dir = disk.path().join("work");
    std::fs::create_dir(&dir).expect("made");
    let sandbox = open_with(subject, spec(&dir)).await;
    let much = "x".repeat(64 * 1024);
    sandbox
        .create_file("kept", b"one\n")
        .await
        .expect("an answer")
        .expect("created");
    let filled = bash(sandbox.as_ref(), "head -c 4000000 /dev/zero > filler").await;
    assert_eq!(filled.ending, Ending::Exited { code: 1 }, "{}", text(&filled));
    let created = sandbox
        .create_file("new", much.as_bytes())
        .await
        .expect("an answer");
    let replaced = sandbox
        .str_replace("kept", "one", &much)
        .await
        .expect("an answer");
    for refused in [created, replaced] {
        let refusal = refused.expect_err("there is no room").to_string();
        assert!(refusal.contains("no space is left"), "{refusal}");
    }
    assert_eq!(
        sandbox.view("kept").await.expect("an answer"),
        Ok(b"one\n".to_vec())
    );
    assert_eq!(
        printed(sandbox.as_ref(), "ls -A; rm filler").await,
        "filler\nkept\n"
    );
    let created = sandbox
        .create_file("new", much.as_bytes())
        .await
        .expect("an answer");
    assert_eq!(created, Ok(()));
    sandbox.close().await.expect("it closes");
}
