//! Commands that could do less or other than was meant: several issues at once, and an answer that comes too late.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::{Play, REPO};
use serde_json::{Value, json};

use crate::{GREETING, PROGRAM};

/// What is wrong with one issue keeps no other from its run, and a program reads one document of all.
#[tokio::test(flavor = "multi_thread")]
async fn every_issue_is_tried_whatever_became_of_those_before() -> Result<()> {
    let stage = Stage::set(PROGRAM, &Play::shell(GREETING)).await?;
    let mut issues = Vec::new();
    for title in ["One", "Two", "Three"] {
        issues.push(stage.person.open_issue(REPO, title, "Please.")?.to_string());
    }
    let [one, two, three] = issues.as_slice() else {
        anyhow::bail!("three issues")
    };

    let said = stage
        .program
        .say(&["run", "start", REPO, "9999", one, "9998", two])?;
    ensure!(said.code == 4, "the worst of them is a refusal: {said:?}");
    let results = said.data["results"].as_array().context("one document")?;
    let shapes: Vec<Value> = results
        .iter()
        .map(|result| json!([result["issue"], result["run"].is_string(), result["code"]]))
        .collect();
    let started = |issue: &str| -> Result<Value> { Ok(json!([issue.parse::<u64>()?, true, null])) };
    ensure!(
        shapes
            == [
                json!([9999, false, "CDR0309"]),
                started(one)?,
                json!([9998, false, "CDR0309"]),
                started(two)?,
            ],
        "{results:#?}"
    );
    for issue in ["#9999: ", "#9998: "] {
        ensure!(
            said.stderr.contains(issue),
            "{issue} is not told: {}",
            said.stderr
        );
    }
    let first = results[1]["run"].as_str().context("a run")?;
    ensure!(stage.show(first)?["run"]["issue"] == started(one)?[0], "{first}");

    let said = stage
        .program
        .say_plainly(&["run", "start", REPO, "9997", three, two])?;
    ensure!(said.code == 4, "{said:?}");
    ensure!(said.stdout.lines().count() == 1, "one run began: {}", said.stdout);
    ensure!(
        said.stderr.contains("CDR0309") && said.stderr.contains("CDR0312"),
        "{}",
        said.stderr
    );

    // One issue alone is told as ever.
    let four = stage.person.open_issue(REPO, "Four", "Please.")?.to_string();
    let said = stage.program.say(&["run", "start", REPO, &four])?.done()?;
    let mut keys: Vec<&String> = said.data.as_object().context("an object")?.keys().collect();
    keys.sort();
    ensure!(keys == ["page", "run"], "{}", said.stdout);
    let said = stage.program.say(&["run", "start", REPO, "9999"])?;
    ensure!(said.code == 4 && said.stdout.is_empty(), "{said:?}");
    Ok(())
}

/// A command whose reader sits at a terminal.
struct Terminal(Child);

impl Terminal {
    fn open(words: &str) -> Result<Self> {
        let child = Command::new("script")
            .args(["--quiet", "--return", "--command", words, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Ok(Self(child.context("opening a terminal")?))
    }

    /// Reads until it says this.
    fn hear(&mut self, wanted: &str) -> Result<String> {
        let out = self.0.stdout.as_mut().context("an output")?;
        let mut heard = Vec::new();
        loop {
            let mut byte = [0];
            let read = out.read(&mut byte).context("reading the terminal")?;
            heard.extend_from_slice(&byte[..read]);
            let text = String::from_utf8_lossy(&heard);
            if text.contains(wanted) {
                return Ok(text.into_owned());
            }
            ensure!(read > 0, "it never said `{wanted}`: {text}");
        }
    }

    /// Types a line, and tells how it ended and what it said.
    fn end(mut self, line: &str) -> Result<(Option<i32>, String)> {
        let mut keys = self.0.stdin.take().context("a keyboard")?;
        keys.write_all(line.as_bytes()).context("typing")?;
        let mut rest = String::new();
        let out = self.0.stdout.as_mut().context("an output")?;
        out.read_to_string(&mut rest).context("reading the terminal")?;
        Ok((self.0.wait().context("waiting")?.code(), rest))
    }
}

/// BEY-4, S-50: words for one question never reach another. Whoever looks at a question while it is answered elsewhere and
/// the agent asks the next is refused; without a terminal nothing is answered that is not named.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_only_the_question_that_was_seen() -> Result<()> {
    let asks = "[[plan]]\n[[plan.step]]\nask_human = \"Whom shall I greet?\"\n\n\
                [[plan]]\n[[plan.step]]\nask_human = \"May I delete everything else?\"\n\n[[plan]]\n";
    let stage = Stage::set(PROGRAM, &Play::shell(&GREETING.replacen("[[plan]]\n", asks, 1))).await?;
    let run = stage.start_run("Ask me twice")?;
    let question = |seen: &Value| seen["holds"][0]["question"].as_str().map(str::to_owned);
    let seen = stage.wait(&run, "a question", |run| question(run).is_some())?;
    let first = question(&seen).context("a question")?;

    let said = stage.program.say(&["run", "answer", &run, "the world"])?;
    ensure!(said.code == 2, "nobody said which: {said:?}");
    let said = said.refused("CDR0414")?;
    ensure!(
        said.stderr.contains(&format!("--question {first}")),
        "{}",
        said.stderr
    );
    let shown = stage.program.say_plainly(&["run", "show", &run])?.done()?.stdout;
    ensure!(shown.contains(&first), "{shown}");

    let data_dir = stage.program.data_dir().display();
    let words = format!("{PROGRAM} --data-dir {data_dir} run answer {run} yes");
    let mut terminal = Terminal::open(&words)?;
    let heard = terminal.hear("answer this question? [y/N] ")?;
    ensure!(
        heard.contains("Whom shall I greet?") && heard.contains(&first),
        "{heard}"
    );
    stage
        .program
        .say(&["run", "answer", &run, "--question", &first, "the world"])?
        .done()?;
    let seen = stage.wait(&run, "another question", |run| {
        question(run).is_some_and(|open| open != first)
    })?;
    let second = question(&seen).context("another question")?;
    let (code, said) = terminal.end("y\n")?;
    ensure!(code == Some(4) && said.contains("CDR0109"), "{code:?}: {said}");
    ensure!(
        question(&stage.show(&run)?) == Some(second),
        "it was taken for an answer"
    );

    let mut terminal = Terminal::open(&words)?;
    terminal.hear("answer this question? [y/N] ")?;
    let (code, said) = terminal.end("n\n")?;
    ensure!(code == Some(4) && said.contains("CDR0415"), "{code:?}: {said}");

    let said = stage
        .program
        .say(&["run", "answer", &run, "--yes", "No."])?
        .done()?;
    ensure!(
        said.stderr.contains("May I delete everything else?"),
        "{}",
        said.stderr
    );
    stage.carry_through(&run).await?;
    stage
        .program
        .say(&["run", "answer", &run, "--yes", "No."])?
        .refused("CDR0109")?;
    stage.verify(&run)
}
