//! Every case of the executors' contract, on an executor that Conductor does not know.

use std::sync::Arc;

use conductor_contract::executor::{MEMORY, PROCESSES, Subject, TEMPORARY};
use conductor_executor::local::{Limits, MayMiss, Settings};
use conductor_executor::{Local, Toolchain};
use logged_executor::{Log, Logged};

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn asked(&self, _what: &str) {}
}

async fn subject() -> Subject {
    let base = tempfile::tempdir().expect("a temporary directory");
    let place = base.path().join("place");
    std::fs::create_dir(&place).expect("made");
    let local = Local::new(Settings {
        root: base.path().join("executor"),
        guest: None,
        toolchain: Toolchain::system(),
        limits: Limits {
            memory: MEMORY,
            processes: PROCESSES,
            temporary: TEMPORARY,
            ..Limits::default()
        },
        may_miss: MayMiss::default(),
    })
    .expect("the local sandbox can be used");
    let records = base.path().join("executor/open");
    Subject {
        executor: Arc::new(Logged::new(local, Arc::new(Silent))),
        place,
        vanish: Arc::new(move |_effect| {
            // The first process on record holds the sandbox.
            for record in std::fs::read_dir(&records).expect("there").flatten() {
                let text = std::fs::read_to_string(record.path().join("processes")).expect("there");
                let pid = text.lines().nth(1).and_then(|line| line.split(' ').next());
                let pid = pid.expect("a process is on record");
                let killed = std::process::Command::new("kill").args(["-9", pid]).status();
                assert!(killed.expect("kill is there").success());
            }
        }),
        guard: Box::new(base),
    }
}

conductor_contract::executor_contract!(crate::subject);
