//! What needs a person is told by a signed webhook, at least once, whatever its listener answers and whoever dies.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::Play;
use serde_json::Value;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(what_needs_a_person_is_told_by_a_signed_webhook);

const SECRET: &str = "sesame-open-sesame-open";
const TITLE: &str = "Greet people and nobody else";

/// A request as the listener got it.
#[derive(Debug)]
struct Delivery {
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Delivery {
    fn id(&self) -> &str {
        &self.headers["x-conductor-delivery"]
    }

    fn event(&self) -> &str {
        &self.headers["x-conductor-event"]
    }
}

/// Listens on this machine; the first is not taken, the second is sent elsewhere, all others are taken.
fn listen() -> Result<(String, Receiver<Delivery>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    let elsewhere = url.replace("/hook", "/elsewhere");
    let (heard, deliveries) = channel();
    std::thread::spawn(move || -> Result<()> {
        let moved = format!("302 Found\r\nlocation: {elsewhere}");
        let mut answers = ["503 Service Unavailable".to_owned(), moved].into_iter();
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream?);
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.trim_end().split_once(": ") else {
                    break;
                };
                headers.insert(name.to_lowercase(), value.to_owned());
            }
            let length = headers.get("content-length").map_or("0", String::as_str);
            let mut body = vec![0; length.parse()?];
            reader.read_exact(&mut body)?;
            let body = String::from_utf8(body)?;
            let answer = answers.next().unwrap_or_else(|| "204 No Content".to_owned());
            let said = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            reader.get_mut().write_all(said.as_bytes())?;
            heard.send(Delivery { path, headers, body })?;
        }
        Ok(())
    });
    Ok((url, deliveries))
}

fn next(deliveries: &Receiver<Delivery>) -> Result<Delivery> {
    deliveries
        .recv_timeout(Duration::from_mins(1))
        .context("nobody told anything")
}

/// Checks a delivery as the documentation tells its listener to, with another implementation than ours.
fn is_signed(delivery: &Delivery, secret: &str) -> Result<bool> {
    const CHECK: &str = "import hashlib, hmac, sys\n\
        secret, signature, delivery = sys.argv[1:]\n\
        told = dict(part.split('=', 1) for part in signature.split(','))\n\
        text = f\"{told['t']}.{delivery}.\".encode() + sys.stdin.buffer.read()\n\
        made = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()\n\
        sys.exit(0 if hmac.compare_digest(made, told['v1']) else 1)\n";
    let mut python = Command::new("python3")
        .args(["-c", CHECK, secret])
        .arg(&delivery.headers["x-conductor-signature"])
        .arg(delivery.id())
        .stdin(Stdio::piped())
        .spawn()?;
    let mut stdin = python.stdin.take().context("a pipe")?;
    stdin.write_all(delivery.body.as_bytes())?;
    drop(stdin);
    Ok(python.wait()?.success())
}

/// UI-3, SEC-3: the plan that waits and the run that is done are told, signed, until they are taken; a redirect is not
/// followed, a server that was killed goes on telling, and no words of the issue leave.
async fn what_needs_a_person_is_told_by_a_signed_webhook(kept: Kept) -> Result<()> {
    let (url, deliveries) = listen()?;
    let room = tempfile::tempdir()?;
    let file = room.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n"))?;
    let settings = format!(
        "[notify]\nurl = \"{url}\"\nsecret-file = \"{}\"\nallow-private = true\n",
        file.display()
    );
    let play = Play {
        settings,
        ..kept.shell(GREETING)
    };
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run(TITLE)?;
    let told = [next(&deliveries)?, next(&deliveries)?, next(&deliveries)?];
    for delivery in &told {
        ensure!(delivery.path == "/hook", "a redirect was followed: {delivery:?}");
        ensure!(
            delivery.event() == "needs_human" && delivery.id() == told[0].id(),
            "{told:?}"
        );
        ensure!(
            is_signed(delivery, SECRET)? && !is_signed(delivery, "another")?,
            "{delivery:?}"
        );
        let body: Value = serde_json::from_str(&delivery.body)?;
        ensure!(
            body["run"]["id"] == run.as_str() && body["delivery"] == delivery.id(),
            "{body}"
        );
    }
    stage.program.kill()?;
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    let mut done = next(&deliveries)?;
    if done.id() == told[0].id() {
        // The server died before it had marked that the third was taken: at least once, under the same id.
        done = next(&deliveries)?;
    }
    ensure!(
        done.event() == "completed" && is_signed(&done, SECRET)?,
        "{done:?}"
    );
    for delivery in told.iter().chain([&done]) {
        let said = format!("{delivery:?}");
        ensure!(!said.contains("Greet") && !said.contains(SECRET), "{said}");
    }
    Ok(())
}
