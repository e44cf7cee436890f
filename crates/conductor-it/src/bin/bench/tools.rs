//! What tools cost: one call over stdio against the public file server, one decision of the policies, redaction against a
//! copy in memory, and the search for secrets against ripgrep.
//!
//! One driver asks both servers in turn, call by call, so that both meet the same minute. Ours works in its sandbox, asks
//! the policies and writes its log. A bar that is missed fails the figure.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_domain::role::Role;
use conductor_policy::authority::{Authority, Request, Ruling};
use conductor_policy::redact::Redactor;
use conductor_policy::secret;
use conductor_policy::secret::live::LiveSecrets;
use serde_json::{Value, json};

use super::{median, millis, program};

/// How many times less a call takes, at the least, and as aimed at.
const CALLS: (f64, f64) = (3.0, 5.0);
/// How long a decision may take, as aimed at.
const DECISION: Duration = Duration::from_micros(50);
/// Redaction against a copy in memory, at the least.
const REDACTION: f64 = 0.03;
/// The search for secrets against ripgrep, at the least.
const SEARCH: f64 = 0.5;
/// The text that is redacted, and searched as one piece.
const TEXT: usize = 48 << 20;
/// The tree that is searched: as many files of sources as it takes.
const TREE: usize = 26 << 20;
const ROUNDS: usize = 9;

/// Patterns as a person would search for: of nine kinds that we look for too.
const PATTERNS: [&str; 9] = [
    "ghp_[A-Za-z0-9]{36}",
    "github_pat_[A-Za-z0-9_]{82}",
    "glpat-[A-Za-z0-9_-]{20}",
    "AKIA[0-9A-Z]{16}",
    "xox[abpr]-[0-9A-Za-z-]{10,}",
    "sk_live_[0-9A-Za-z]{24,}",
    "AIza[0-9A-Za-z_-]{35}",
    "npm_[A-Za-z0-9]{36}",
    "-----BEGIN [A-Z ]*PRIVATE KEY-----",
];

/// Where both servers have their files for the bar: in memory, because on some disks a new file takes longer than either server does while
/// thousands of others were removed a moment ago, and that is neither's.
fn ground() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(if memory.is_dir() {
        memory
    } else {
        Path::new("/var/tmp")
    })
}

/// Prints all figures; `calls` is how often each tool of each server is called.
pub(crate) fn figures(calls: usize) -> Result<()> {
    let mut missed = Vec::new();
    let mut bar = |what: &str, is_met: bool| {
        if !is_met {
            missed.push(what.to_owned());
        }
    };
    let dir = tempfile::tempdir_in("/var/tmp")?;
    println!("on the disk, without a bar:");
    by_protocol(dir.path(), calls)?;
    println!("in memory:");
    let ground = ground()?;
    let (view, replace) = by_protocol(ground.path(), calls)?;
    bar("view", view >= CALLS.0);
    bar("str_replace", replace >= CALLS.0);
    decision()?;
    let sources = sources()?;
    let text: Vec<u8> = sources.iter().flatten().copied().cycle().take(TEXT).collect();
    bar("redaction", redaction(&text) >= REDACTION);
    let (mut files, mut bytes) = (Vec::new(), 0);
    for source in sources.iter().cycle() {
        if bytes >= TREE {
            break;
        }
        files.push(source.as_slice());
        bytes += source.len();
    }
    bar("search", search(&dir.path().join("tree"), &files)? >= SEARCH);
    // Where ripgrep need not open a file every few microseconds, it is at its best; there is no bar for that.
    let pieces: Vec<&[u8]> = text.chunks(256 << 10).collect();
    search(&dir.path().join("pieces"), &pieces)?;
    ensure!(missed.is_empty(), "bars that were missed: {}", missed.join(", "));
    Ok(())
}

/// A client of one server, on its stdin and stdout.
struct Client {
    child: Child,
    write: Option<ChildStdin>,
    read: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let (write, read) = (child.stdin.take(), child.stdout.take().context("a pipe")?);
        let mut client = Self {
            child,
            write,
            read: BufReader::new(read),
            next: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        client.ask("initialize", &hello)?;
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.send(&line)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let write = self.write.as_mut().context("a pipe")?;
        write.write_all(line.as_bytes())?;
        Ok(write.flush()?)
    }

    /// Asks, and tells how long the answer took to come; what the driver itself takes to read it is nobody's time.
    fn ask(&mut self, method: &str, params: &Value) -> Result<(Duration, Value)> {
        self.next += 1;
        let id = self.next;
        let mut question =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        question.push('\n');
        let mut line = String::with_capacity(64 << 10);
        let begun = Instant::now();
        self.send(&question)?;
        loop {
            line.clear();
            ensure!(self.read.read_line(&mut line)? > 0, "the server left");
            let took = begun.elapsed();
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                ensure!(answer.get("error").is_none(), "{method}: {answer}");
                return Ok((took, answer["result"].take()));
            }
        }
    }

    /// Calls a tool, and tells how long that took.
    fn call(&mut self, name: &str, arguments: &Value) -> Result<(Duration, String)> {
        let params = json!({ "name": name, "arguments": arguments });
        let (took, answer) = self.ask("tools/call", &params)?;
        ensure!(answer["isError"] != true, "{name}: {answer}");
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        Ok((took, text.to_owned()))
    }

    fn end(mut self) -> Result<()> {
        drop(self.write.take());
        self.child.wait()?;
        Ok(())
    }
}

/// Calls the same tools of both servers in turn; returns how many times less ours takes, for each tool.
fn by_protocol(dir: &Path, calls: usize) -> Result<(f64, f64)> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let (ours, theirs) = (dir.join("ours"), dir.join("theirs"));
    let lines = "fn a_line_like_any_other() -> u32 { 1 + 2 + 3 }\n";
    let text = format!("{}let toggle = \"one\";\n{}", lines.repeat(80), lines.repeat(80));
    for dir in [&ours, &theirs] {
        std::fs::create_dir(dir)?;
        std::fs::write(dir.join("file.rs"), &text)?;
    }
    let log = dir.join("log.jsonl");
    let begun = Instant::now();
    let mut us = Client::start(
        Command::new(program()?)
            .args(["tools", "serve", "--executor", "local", "--stdio", "--log"])
            .arg(&log)
            .arg("--worktree")
            .arg(&ours),
    )?;
    let our_start = begun.elapsed();
    let begun = Instant::now();
    let mut them = Client::start(
        Command::new(tools.join("node22/bin/node"))
            .arg(tools.join("mcp/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"))
            .arg(&theirs),
    )?;
    let their_start = begun.elapsed();
    println!(
        "start: ours with its sandbox answers after {:.0} ms, server-filesystem after {:.0} ms",
        millis(our_start),
        millis(their_start)
    );
    let their_path = theirs.join("file.rs").display().to_string();
    let (mut view, mut replace) = ((vec![], vec![]), (vec![], vec![]));
    for round in 0..calls + calls / 10 {
        let is_warm = round >= calls / 10;
        let (old, new) = if round % 2 == 0 {
            ("one", "two")
        } else {
            ("two", "one")
        };
        let (old, new) = (format!("toggle = \"{old}\""), format!("toggle = \"{new}\""));
        let (a, seen) = us.call("view", &json!({ "path": "file.rs" }))?;
        ensure!(seen.contains(&old), "our file is not as it should be");
        let (b, seen) = them.call("read_text_file", &json!({ "path": their_path }))?;
        ensure!(seen.contains(&old), "their file is not as it should be");
        let edit = json!({ "path": their_path, "edits": [{ "oldText": old, "newText": new }] });
        let (d, _done) = them.call("edit_file", &edit)?;
        // Last, so that what we do after the answer falls into a time of our own.
        let (c, _done) = us.call(
            "str_replace",
            &json!({ "path": "file.rs", "old": old, "new": new }),
        )?;
        if is_warm {
            view.0.push(a);
            view.1.push(b);
            replace.0.push(c);
            replace.1.push(d);
        }
    }
    us.end()?;
    them.end()?;
    let logged = std::fs::read_to_string(&log)?.lines().count();
    ensure!(logged == 2 * (calls + calls / 10), "the log holds {logged} calls");
    let told = |name: &str, (ours, theirs): (Vec<Duration>, Vec<Duration>)| {
        let (ours, theirs) = (median(ours), median(theirs));
        let times = theirs.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{name}: {:.3} ms, server-filesystem {:.3} ms, {times:.1} times less (bar {}, aim {})",
            millis(ours),
            millis(theirs),
            CALLS.0,
            CALLS.1
        );
        times
    };
    Ok((told("view", view), told("str_replace", replace)))
}

/// One decision of the shipped policies, allowed and denied.
fn decision() -> Result<()> {
    let authority = Authority::shipped();
    let asked = [
        (Role::Implementer, "str_replace", "src/lib.rs", Ruling::Allow),
        (Role::Planner, "bash", "", Ruling::Deny),
        (
            Role::Implementer,
            "create_file",
            ".git/hooks/pre-push",
            Ruling::Deny,
        ),
    ];
    let mut times = vec![];
    for _ in 0..3000 {
        for (role, tool, path, expected) in &asked {
            let begun = Instant::now();
            let request = Request::of_tool(*role, tool, path).context("a tool")?;
            let verdict = authority.judge(&request);
            times.push(begun.elapsed());
            ensure!(verdict.ruling == *expected, "{tool}: {verdict:?}");
        }
    }
    let took = median(times);
    let word = if took <= DECISION { "met" } else { "missed" };
    println!(
        "decision: {:.1} µs, the aim of {} µs is {word}",
        took.as_secs_f64() * 1e6,
        DECISION.as_micros()
    );
    Ok(())
}

/// Our own sources, each as it is.
fn sources() -> Result<Vec<Vec<u8>>> {
    let mut sources = Vec::new();
    gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut sources)?;
    ensure!(!sources.is_empty(), "there are no sources");
    Ok(sources)
}

fn gather(dir: &Path, sources: &mut Vec<Vec<u8>>) -> Result<()> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        // What is planted for the secret scan is no ordinary text.
        if path.is_dir() && !path.ends_with("corpus") {
            gather(&path, sources)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources.push(std::fs::read(&path)?);
        }
    }
    Ok(())
}

/// Redaction of ordinary text, against a copy of it in memory.
fn redaction(text: &[u8]) -> f64 {
    let redactor = Redactor::new(LiveSecrets::new(["a-secret-of-this-instance-0123456789"]));
    let (mut ours, mut copies) = (vec![], vec![]);
    let mut to = vec![0_u8; text.len()];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        std::hint::black_box(redactor.redact_bytes(std::hint::black_box(text)));
        ours.push(begun.elapsed());
        let begun = Instant::now();
        to.copy_from_slice(std::hint::black_box(text));
        std::hint::black_box(&mut to);
        copies.push(begun.elapsed());
    }
    let (ours, copies) = (median(ours), median(copies));
    let ratio = copies.as_secs_f64() / ours.as_secs_f64();
    println!(
        "redaction: {:.0} MB/s, a copy in memory {:.0} MB/s, ratio {ratio:.3} (bar {REDACTION})",
        rate(text.len(), ours),
        rate(text.len(), copies)
    );
    ratio
}

/// The search for secrets in a tree of files, against ripgrep with nine patterns, each on one thread.
fn search(tree: &Path, files: &[&[u8]]) -> Result<f64> {
    std::fs::create_dir(tree)?;
    for (number, file) in files.iter().enumerate() {
        std::fs::write(tree.join(format!("{number:05}.rs")), file)?;
    }
    let bytes = files.iter().map(|file| file.len()).sum();
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for entry in std::fs::read_dir(tree)? {
            let bytes = std::fs::read(entry?.path())?;
            std::hint::black_box(secret::scan(&bytes));
        }
        ours.push(begun.elapsed());
        let mut rg = Command::new("rg");
        rg.args(["--threads", "1", "--no-config", "--no-ignore", "--count-matches"])
            .args(PATTERNS.iter().flat_map(|pattern| ["--regexp", pattern]))
            .arg(tree)
            .stdout(Stdio::null());
        let begun = Instant::now();
        // Whether it finds anything is not the question.
        let status = rg.status().context("starting rg")?;
        theirs.push(begun.elapsed());
        ensure!(matches!(status.code(), Some(0 | 1)), "rg ended with {status}");
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "search of {} files: {:.0} MB/s, ripgrep with nine patterns {:.0} MB/s, ratio {ratio:.2} (bar for a tree {SEARCH})",
        files.len(),
        rate(bytes, ours),
        rate(bytes, theirs)
    );
    Ok(ratio)
}

fn rate(bytes: usize, took: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes = bytes as f64;
    bytes / 1e6 / took.as_secs_f64()
}
