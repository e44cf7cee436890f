//! What sandboxes ask of the network: what is allowed comes, what is denied is seen by an operator, granted, and then comes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::{Play, REPO};
use serde_json::Value;

use crate::PROGRAM;
use crate::kept::{Kept, on_both_databases};

on_both_databases!(
    a_denied_request_is_seen_granted_and_then_let_out,
    tests_have_a_way_out_only_where_the_registration_says_so,
);

const FETCHING: &str = include_str!("../../testdata/scenarios/fetching.toml");
const ZERO_THINK: &str = include_str!("../../testdata/scenarios/zero_think.toml");

/// A host outside: answers every request with the same words, and remembers the first line of each.
struct Host {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn saying(words: &'static str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
        let port = listener.local_addr().context("its number")?.port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut request = Vec::new();
                let mut piece = [0; 1024];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut piece) {
                        Ok(count @ 1..) => request.extend_from_slice(&piece[..count]),
                        Ok(_) | Err(_) => break,
                    }
                }
                remembered
                    .lock()
                    .expect("not poisoned")
                    .push(String::from_utf8_lossy(&request).into_owned());
                let _gone = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{words}",
                    words.len()
                );
            }
        });
        Ok(Self { port, asked })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

/// Sets the stage with two hosts outside and one of them allowed.
async fn stage(play: &Play, files: &Host, other: &Host) -> Result<Stage> {
    let mut stage = Stage::set_without_server(PROGRAM, play).await?;
    stage.program.plays("files.example", files.port);
    stage.program.plays("other.example", other.port);
    stage.program.start(None)?;
    Ok(stage)
}

fn play(kept: &Kept, test: &str) -> Play {
    kept.play(Play {
        settings: "[egress]\nallow = [\"http://files.example\"]\n".to_owned(),
        test: test.to_owned(),
        ..Play::shell(FETCHING)
    })
}

/// EXEC-3, EXEC-3a, BEY-6, S-34: allowed by settings it comes; not allowed it is denied, before anybody outside is asked; the
/// operator sees who asked for what and the exact command, runs it, and the same run's next sandbox gets it. The tests of the
/// run have no way out at all.
async fn a_denied_request_is_seen_granted_and_then_let_out(kept: Kept) -> Result<()> {
    let (files, other) = (Host::saying("hello\n")?, Host::saying("hello, world\n")?);
    let play = play(
        &kept,
        "sh -c 'test -z \"${HTTP_PROXY-}${https_proxy-}\" && ! (exec 3<>/dev/tcp/127.0.0.1/3128) && sh test.sh'",
    );
    let stage = stage(&play, &files, &other).await?;
    stage.register(&play)?;
    let run = stage.start_run("Fetch a greeting")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let asking = stage.wait(&run, "its question", |run| {
        run["holds"][0]["kind"] == "question" && run["under_way"].as_array().is_some_and(Vec::is_empty)
    })?;
    ensure!(files.asked().len() == 1, "{:?}", files.asked());
    ensure!(other.asked().is_empty(), "{:?}", other.asked());
    let passed_on = files.asked().concat();
    ensure!(
        !passed_on.to_lowercase().contains("proxy-authorization"),
        "{passed_on}"
    );

    let denial = the_denial(&asking)?;
    ensure!(
        denial["target"] == "other.example:80"
            && denial["command"] == "curl -sS -m 20 http://other.example/greeting"
            && denial["request"]["granted"] == false
            && denial["request"]["risk"] == "can exfiltrate",
        "{denial:#}"
    );
    let command = denial["request"]["command"].as_str().context("a command")?;
    ensure!(
        command == "conductor egress allow http://other.example --project acme",
        "{command}"
    );
    let shown = stage.program.say_plainly(&["run", "show", &run])?.done()?.stdout;
    ensure!(shown.contains(command), "{shown}");
    let events = stage
        .program
        .say(&["run", "show", &run, "--events"])?
        .done()?
        .data;
    ensure!(events.to_string().contains("egress_denied"), "{events}");

    let words: Vec<&str> = command.split(' ').skip(1).collect();
    stage.program.say(&words)?.done()?;
    let seen = stage.show(&run)?;
    ensure!(the_denial(&seen)?["request"]["granted"] == true, "{seen:#}");
    stage
        .program
        .say(&["run", "answer", &run, "--yes", "Yes, it is allowed now."])?
        .done()?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    ensure!(other.asked().len() == 1, "{:?}", other.asked());
    let left = std::fs::read_dir(stage.program.data_dir().join("doors"))?.count();
    ensure!(left == 0, "{left} doors are left");
    let listed = stage.program.say(&["egress", "list"])?.done()?.data;
    ensure!(listed["grants"][0]["grant"] == "http://other.example", "{listed}");
    stage
        .program
        .say(&["egress", "revoke", "http://other.example", "--project", "acme"])?
        .done()?;
    stage
        .program
        .say(&["egress", "revoke", "http://other.example", "--project", "acme"])?
        .refused("CDR0207")?;
    for bad in ["127.0.0.1", "localhost", "*.example", "other.example:0"] {
        let said = stage
            .program
            .say(&["egress", "allow", bad, "--project", "acme"])?;
        ensure!(said.code > 0 && said.stderr.contains(bad), "{bad}: {said:?}");
    }
    stage.verify(&run)
}

fn the_denial(run: &Value) -> Result<Value> {
    let denials = run["denials"].as_array().context("denials")?;
    ensure!(denials.len() == 1, "{run:#}");
    Ok(denials[0].clone())
}

/// EXEC-3a, BEY-6: a test command reaches what its project may where the repository's registration says so, nothing else, and
/// what it is denied is shown as its own.
async fn tests_have_a_way_out_only_where_the_registration_says_so(kept: Kept) -> Result<()> {
    let (files, other) = (Host::saying("hello\n")?, Host::saying("never\n")?);
    let test = "sh -c 'curl -fsS -m 20 http://files.example/ok && ! curl -fsS -m 20 http://other.example/ && sh test.sh'";
    let play = Play {
        scenario: ZERO_THINK.to_owned(),
        ..play(&kept, test)
    };
    let stage = stage(&play, &files, &other).await?;
    stage.program.say(&["project", "add", "acme"])?.done()?;
    let add = ["repo", "add", REPO, "--project", "acme", "--test", test];
    stage
        .program
        .say(&[&add[..], &["--test-egress"]].concat())?
        .done()?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait_for_phase(&run, "awaiting_merge")?;
    ensure!(seen["tests"][0]["passed"] == true, "{seen:#}");
    let denial = the_denial(&seen)?;
    ensure!(
        denial["target"] == "other.example:80" && denial["command"] == test_words(test),
        "{denial:#}"
    );
    ensure!(
        (files.asked().len(), other.asked().len()) == (1, 0),
        "{:?} {:?}",
        files.asked(),
        other.asked()
    );
    stage.verify(&run)
}

/// The command as it was registered, without its quotes.
fn test_words(test: &str) -> String {
    test.replace('\'', "")
}
