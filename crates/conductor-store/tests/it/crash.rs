//! What a `kill -9` leaves behind: everything that was acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use conductor_port::ledger::{Ledger, StreamId};
use conductor_store::{Database, Settings};
use tokio::task::JoinSet;

use crate::given::{batch, count, open, run_id};

const CHILD: &str = "CONDUCTOR_STORE_TEST_CHILD";
const WRITERS: usize = 4;

/// RUN-4, GH-2. The test starts itself as a child that appends until it is killed, and counts its acknowledgements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "the test is its own child process")]
async fn what_was_acknowledged_survives_kill_9() {
    if let Some(path) = std::env::var_os(CHILD) {
        append_for_ever(Path::new(&path)).await;
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let mut acknowledged = [0_u64; WRITERS];
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::what_was_acknowledged_survives_kill_9",
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let acks = lines.filter_map(|line| line.strip_prefix("ack ").map(str::to_owned));
        let mut killed = false;
        for (n, ack) in acks.enumerate() {
            let (writer, seq) = ack.split_once(' ').unwrap();
            acknowledged[writer.parse::<usize>().unwrap()] = seq.parse().unwrap();
            if n == 20 * round && !killed {
                // SIGKILL; what is still in the pipe was acknowledged before it.
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(killed, "the child ended by itself");

        // First the way a command reads without a server, which must find the unfinished log and read through it.
        let reader = Database::open_read_only(&path, &Settings::default())
            .await
            .unwrap();
        for (writer, seq) in acknowledged.iter().enumerate() {
            assert!(count(&reader, &format!("r-{writer}")).await as u64 >= *seq);
        }
        reader.close().await;
    }
    let store = open(&path).await;
    for (writer, seq) in acknowledged.into_iter().enumerate() {
        let records = store
            .read(&StreamId::Run(run_id(&format!("r-{writer}"))), 0, u32::MAX)
            .await
            .unwrap();
        assert!(
            records.len() as u64 >= seq,
            "{} of {seq} are there",
            records.len()
        );
        let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
        assert_eq!(seqs, (1..=records.len() as u64).collect::<Vec<_>>());
    }
}

async fn append_for_ever(path: &Path) {
    let store = Arc::new(open(path).await);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            let run = format!("r-{writer}");
            let mut seq = count(&store, &run).await as u64;
            loop {
                Ledger::append(&*store, batch(&run, seq, "{}")).await.unwrap();
                seq += 1;
                let mut out = std::io::stdout().lock();
                writeln!(out, "ack {writer} {seq}").unwrap();
                out.flush().unwrap();
            }
        });
    }
    writers.join_next().await;
}
