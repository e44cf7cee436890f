//! Measures what a guest costs, beside what the same costs without it.
//!
//! `cargo run --release -p conductor-guest --example bench_guest` prints medians of interleaved rounds and their
//! ratios, on the static guest as it is shipped. Run it on an idle machine.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures with the clock, plays the host, and prints"
)]

#[path = "../embed.rs"]
mod embed;

use std::error::Error;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conductor_guest::calls::{Calls, Standing};
use conductor_guest::frame::Decoder;
use conductor_guest::order::{Range, Request, Run, Streams};
use conductor_guest::response::Response;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 300;
const CREDIT: u32 = 4 * 1024 * 1024;
const STREAM: u64 = 500 * 1024 * 1024;

fn main() -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let target = std::env::current_exe()?;
    let target = target
        .ancestors()
        .nth(3)
        .ok_or("an example lies in target/PROFILE/examples")?;
    let program = embed::build(&target.join("tmp"))?;
    println!("static guest: {} bytes", std::fs::metadata(&program)?.len());
    std::fs::write(place.path().join("8k"), vec![b'x'; 8 * 1024])?;

    let mut guest = Guest::start(&program, place.path())?;
    let mut echo = Echo::start()?;
    let pipe = || echo.round_trip();
    let ping = || guest.ask(Request::Ping).map(drop);
    compare("ping", "pipe round trip", ROUNDS, ping, pipe)?;

    let view = || {
        let path = "8k".into();
        let range = Range::Whole;
        guest.ask(Request::View { path, range }).map(drop)
    };
    compare("view of 8 KiB", "pipe round trip", ROUNDS, view, || {
        echo.round_trip()
    })?;

    for argv in [&["/bin/true"][..], &["/bin/bash", "-c", "true"]] {
        let inside = || guest.ask(run(argv)).map(drop);
        let raw = || {
            spawn(
                Command::new(argv[0])
                    .args(&argv[1..])
                    .env_clear()
                    .stdin(Stdio::null()),
            )
        };
        compare(&argv.join(" "), "raw spawn and wait", ROUNDS, inside, raw)?;
    }

    let start = || Guest::start(&program, place.path())?.ask(Request::Ping).map(drop);
    let raw = || spawn(&mut Command::new("/bin/true"));
    compare("guest start, ping and end", "raw spawn and wait", 50, start, raw)?;

    let bytes = STREAM.to_string();
    let stream = || {
        guest
            .ask(run(&["/usr/bin/head", "-c", &bytes, "/dev/zero"]))
            .map(drop)
    };
    let script = format!("head -c {STREAM} /dev/zero | cat | cat >/dev/null");
    let raw = || spawn(Command::new("bash").args(["-c", &script]));
    compare("500 MiB of output", "head | cat | cat", 5, stream, raw)
}

fn spawn(command: &mut Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(status.to_string().into())
    }
}

/// Prints both medians; rounds are interleaved, so that both see the same machine.
fn compare(
    what: &str,
    baseline: &str,
    rounds: usize,
    mut work: impl FnMut() -> Outcome<()>,
    mut base: impl FnMut() -> Outcome<()>,
) -> Outcome<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(timed(&mut work)?);
        theirs.push(timed(&mut base)?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what}: {ours:.2?}; {baseline}: {theirs:.2?}; ratio {ratio:.2}");
    Ok(())
}

fn timed(work: &mut impl FnMut() -> Outcome<()>) -> Outcome<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn run(argv: &[&str]) -> Request {
    Request::Run(Run {
        argv: argv.iter().map(Into::into).collect(),
        environment: Vec::new(),
        directory: "".into(),
        time_ms: 60_000,
        output: u64::MAX,
        credit: CREDIT,
        streams: Streams::Together,
    })
}

struct Guest {
    child: Child,
    input: Option<PipeWriter>,
    output: PipeReader,
    decoder: Decoder<Response>,
    calls: Calls,
}

impl Guest {
    fn start(program: &Path, root: &Path) -> Outcome<Self> {
        let ((orders, input), (output, responses)) = (std::io::pipe()?, std::io::pipe()?);
        let child = Command::new(program)
            .arg("--root")
            .arg(root)
            .stdin(orders)
            .stdout(responses)
            .spawn()?;
        Ok(Self {
            child,
            input: Some(input),
            output,
            decoder: Decoder::default(),
            calls: Calls::default(),
        })
    }

    /// Asks and waits for the result, granting what was used once it is half of what was granted.
    fn ask(&mut self, request: Request) -> Outcome<Response> {
        let frame = self.calls.begin(request)?;
        let id = frame.id;
        let mut bytes = Vec::new();
        frame.encode(&mut bytes)?;
        let input = self.input.as_mut().ok_or("the channel is open")?;
        input.write_all(&bytes)?;
        let mut used = 0;
        loop {
            let Some(frame) = self.decoder.next()? else {
                let count = self.output.read(self.decoder.room())?;
                self.decoder.filled(count);
                if count == 0 {
                    return Err("the guest is gone".into());
                }
                continue;
            };
            if self.calls.admit(&frame)? == Standing::Over {
                return Ok(frame.body);
            }
            if let Response::Output { bytes: printed, .. } = &frame.body {
                used += u32::try_from(printed.len())?;
            }
            if used > CREDIT / 2
                && let Some(grant) = self.calls.grant(id, used)
            {
                used = 0;
                bytes.clear();
                grant.encode(&mut bytes)?;
                input.write_all(&bytes)?;
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.input = None;
        // Only measured; nobody is left to tell.
        let _ = self.child.wait();
    }
}

/// `cat`, as the least that two processes can say to each other.
struct Echo(Child);

impl Echo {
    fn start() -> Outcome<Self> {
        Ok(Self(
            Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?,
        ))
    }

    fn round_trip(&mut self) -> Outcome<()> {
        let (Some(input), Some(output)) = (&mut self.0.stdin, &mut self.0.stdout) else {
            return Err("cat has both pipes".into());
        };
        input.write_all(&[7; 16])?;
        output.read_exact(&mut [0; 16])?;
        Ok(())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
